import logging

import pytest

from mtl.cli.messages import messages_on_stderr, printable


def test_messages_go_to_stderr_and_only_inside(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("mtl")
    before = (logger.level, list(logger.handlers), logger.propagate)
    with messages_on_stderr():
        logger.info("trained %d updates", 5)
        logger.warning("odd rows")
        logger.debug("not shown")
    assert capsys.readouterr() == ("", "trained 5 updates\nwarning: odd rows\n")
    assert (logger.level, logger.handlers, logger.propagate) == before


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a line\nand another, née Ω 中", "a line\nand another, née Ω 中"),
        ("label '\x1b[2J\x00\r' in a\tcell", r"label '\x1b[2J\x00\r' in a\tcell"),
        (f"{'x' * 399} is a word", f"{'x' * 399} is a word"),
        (f"task '{'x' * 5000}' is none", f"task '{'x' * 59}[...]{'x' * 59}' is none"),
    ],
)
def test_a_message_can_be_shown_whatever_it_quotes(message: str, shown: str) -> None:
    assert printable(message) == shown
