"""Where the package's messages go while a command runs: to stderr, so that stdout holds results only."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mtl.runtime.torchrun import this_rank

_KEPT = 60
# The longest path that anybody writes is shorter.
_ENDLESS = re.compile(r"\S{400,}")


@contextmanager
def messages_on_stderr() -> Iterator[None]:
    """Show what the package logs, from informative messages on; as before when done, for whoever calls ``main``.

    Of the ranks of a run only the first shows all; the others warnings and worse, each marked with its rank.
    """
    logger = logging.getLogger("mtl")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    level, propagated = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if this_rank() == 0 else logging.WARNING)
    # Another library may have given the root logger a handler, and each message would come twice.
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagated


def rank_mark() -> str:
    """What a message begins with: nothing, or for a rank that is not the first ``[rank N] ``."""
    return f"[rank {this_rank()}] " if this_rank() else ""


def printable(message: str) -> str:
    """The message without what would steer a terminal, and with the middle of endless words left out.

    A message quotes what it is about, which may be anything: a file's cell, a name of five thousand letters.
    """
    plain = "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1] for character in message
    )
    return _ENDLESS.sub(lambda word: f"{word[0][:_KEPT]}[...]{word[0][-_KEPT:]}", plain)


class _Plain(logging.Formatter):
    """The message alone; its level before it only where that is a warning or worse."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.levelno < logging.WARNING else f"{rank_mark()}{record.levelname.lower()}: {text}"
