"""The endless order in which one task's training rows are used: epoch after epoch, each in a new permutation."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mtl.random_streams import stream_key
from mtl.sampling.permutation import permuted
from mtl.sampling.samplers import IntArray

_KEPT_EPOCHS = 2
"""Examples that are looked at together may lie on both sides of an epoch's end."""
_LARGEST_KEPT = 2**20
"""Rows of the longest order that is kept whole (8 MiB); in a longer one each place is computed when asked for."""


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
    _orders: dict[int, IntArray] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        key = stream_key(self.seed, "order", self.task, epoch)
        if self.size > _LARGEST_KEPT:
            return permuted(positions, self.size, key)
        # Looking a place up is far cheaper than computing it, and planning does so for every example.
        order = self._orders.get(epoch)
        if order is None:
            order = self._orders[epoch] = permuted(np.arange(self.size, dtype=np.int64), self.size, key)
            if len(self._orders) > _KEPT_EPOCHS:
                self._orders.pop(next(iter(self._orders)))
        return order[positions]
