"""The endless order in which one task's training rows are used: epoch after epoch, each in a new permutation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtl.random_streams import stream_key
from mtl.sampling.permutation import permuted
from mtl.sampling.samplers import IntArray


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
        for epoch in np.unique(epochs):
            key = stream_key(self.seed, "order", self.task, int(epoch))
            chosen[epochs == epoch] = permuted(positions[epochs == epoch], self.size, key)
        return chosen
