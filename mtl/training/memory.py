"""Running out of memory in an update: noticed on any rank, answered by all with smaller micro-batches."""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mtl.runtime.ranks import Ranks
from mtl.training.prepared import Preparation, PreparedUpdate

logger = logging.getLogger("mtl")


class MemoryWatch:
    """Catches torch's out-of-memory errors, so that a rank can tell the others before anybody waits for it.

    ``exhausted``: whether memory ran out in the attempt at hand.
    """

    def __init__(self) -> None:
        self.exhausted = False
        self._most_tokens: float | None = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around work that may not fit; what is left of the block is skipped if it does not."""
        try:
            yield
        except torch.OutOfMemoryError:
            self.exhausted = True

    def give_up(self, update: PreparedUpdate, ranks: Ranks) -> None:
        """Forget the attempt; from here on micro-batches of ``update``'s mean size are too large, on every rank."""
        self.exhausted = False
        self._most_tokens = _mean_tokens(update, ranks) / 2
        # Once, for all of them.
        logger.log(
            logging.WARNING if ranks.first else logging.DEBUG,
            "out of memory at update %d with %d micro-batches on each of %d ranks; it is taken again in smaller ones",
            update.step,
            update.micro_batches,
            ranks.size,
        )
        # An exception's frames hold tensors until they are collected.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def fitted(self, update: PreparedUpdate, preparation: Preparation) -> PreparedUpdate:
        """The update, in smaller micro-batches if its own are as large as some that did not fit.

        What holds one example each is tried at any size: it has not failed yet.
        """
        while (
            self._most_tokens is not None
            and _mean_tokens(update, preparation.ranks) > self._most_tokens
            and update.micro_batches < preparation.most_micro_batches(update)
        ):
            update = preparation.halved(update)
        return update


def _mean_tokens(update: PreparedUpdate, ranks: Ranks) -> float:
    return update.work.tokens / (ranks.size * update.micro_batches)
