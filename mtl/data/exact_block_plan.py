"""Exact epochs in updates of one task each: every task's epoch cut into blocks, the blocks of all tasks merged."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtl.data.plan import UpdatePlan
from mtl.data.streams import TaskStream
from mtl.sampling.exact_epoch import counts_before, merged_slice
from mtl.sampling.probabilities import FloatArray, power_probabilities
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class ExactBlockPlanner:
    """An update is one block of up to ``rows`` examples of one task; a task's last block of an epoch may be smaller."""

    seed: int
    total: int
    streams: Sequence[TaskStream]
    rows: int

    def probabilities(self, step: int) -> FloatArray:
        return power_probabilities(sizes_of(self.streams).astype(np.float64), 1.0)

    def seek(self, step: int, cursors: IntArray) -> None:
        """Nothing to do: any update follows from its number alone."""

    def plan(self, step: int) -> UpdatePlan:
        """See ``UpdatePlanner``."""
        blocks = blocks_of(self.streams, self.rows)
        epoch, place = divmod(step, int(blocks.sum()))
        task, block = (int(found[0]) for found in merged_slice(place, place + 1, blocks, self.seed, epoch))
        stream = self.streams[task]
        end = min(stream.size, (block + 1) * self.rows)
        chosen = stream.chosen(epoch * stream.size + np.arange(block * self.rows, end, dtype=np.int64))
        return UpdatePlan(step, np.full(chosen.size, task), stream.rows[chosen], stream.lengths[chosen])

    @property
    def examples(self) -> int:
        """Examples in the whole training."""
        return int(self.cursors(self.total).sum())

    def cursors(self, step: int) -> IntArray:
        """Examples of each task (K,) before ``step``."""
        sizes, blocks = sizes_of(self.streams), blocks_of(self.streams, self.rows)
        epoch, place = divmod(step, int(blocks.sum()))
        whole = counts_before(place, blocks, self.seed, epoch) * self.rows
        return np.asarray(epoch * sizes + np.minimum(sizes, whole), dtype=np.int64)


def sizes_of(streams: Sequence[TaskStream]) -> IntArray:
    """Examples of each task in an epoch (K,)."""
    return np.array([stream.size for stream in streams], dtype=np.int64)


def blocks_of(streams: Sequence[TaskStream], rows: int) -> IntArray:
    """Updates of each task in an epoch (K,)."""
    return -(-sizes_of(streams) // rows)
