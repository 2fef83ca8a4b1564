"""The endless order in which one task's training rows are used: epoch after epoch, each in a new permutation."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mtl.random_streams import stream_key
from mtl.sampling.permutation import permuted
from mtl.sampling.samplers import IntArray

_KEPT = 2
"""Stretches of an order: examples that are looked at together may lie on both sides of the end of one."""
_LARGEST_WHOLE = 2**20
"""Rows of the longest order that is computed and kept whole (8 MiB)."""
_STRETCH = 128
"""Places of a longer order that are computed together: hardly dearer than one, and they are asked for in turn."""


@dataclass(frozen=True)
class TaskStream:
    """The rows of one task that may be trained on (n,), with their lengths in tokens (n,), in random order by epoch.

    Place i of the stream lies in epoch ``i // n``; the order depends on the seed, the task's name and the epoch alone,
    so another task in the run, or a resumed run, sees the same rows in the same order.
    """

    task: str
    seed: int
    rows: IntArray
    lengths: IntArray
    _orders: dict[tuple[int, int], IntArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Rows in an epoch."""
        return int(self.rows.size)

    @cached_property
    def mean_length(self) -> float:
        """Tokens of an average row."""
        return float(self.lengths.mean())

    def chosen(self, places: IntArray) -> IntArray:
        """Indices (N,) into ``rows`` and ``lengths`` of the given places (N,) of the stream."""
        epochs, positions = np.divmod(places, self.size)
        chosen = np.empty(places.size, dtype=np.int64)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            chosen[here] = self._at(positions[here], epoch)
        return chosen

    def _at(self, positions: IntArray, epoch: int) -> IntArray:
        # Looking a place up is far cheaper than computing it, and planning does so for every example.
        length = self.size if self.size <= _LARGEST_WHOLE else _STRETCH
        numbers, within = np.divmod(positions, length)
        chosen = np.empty(positions.size, dtype=np.int64)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            chosen[here] = self._order(epoch, number, length)[within[here]]
        return chosen

    def _order(self, epoch: int, number: int, length: int) -> IntArray:
        """The rows at the places of a stretch of that length."""
        order = self._orders.get((epoch, number))
        if order is None:
            places = np.arange(number * length, min((number + 1) * length, self.size), dtype=np.int64)
            order = permuted(places, self.size, stream_key(self.seed, "order", self.task, epoch))
            self._orders[epoch, number] = order
            if len(self._orders) > _KEPT:
                self._orders.pop(next(iter(self._orders)))
        return order
