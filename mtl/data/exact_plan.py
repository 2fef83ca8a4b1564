"""Updates that take every example of every task exactly once an epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtl.data.plan import UpdatePlan
from mtl.data.streams import TaskStream
from mtl.sampling.exact_epoch import counts_before, merged_slice
from mtl.sampling.probabilities import FloatArray, power_probabilities
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class ExactEpochPlanner:
    """Slices of ``rows`` examples of the merged order of all tasks, epoch after epoch; the last epoch may be a part.

    An update that reaches the end of an epoch goes on into the next; the last update ends with the last epoch.
    """

    seed: int
    total: int
    streams: Sequence[TaskStream]
    rows: int
    examples: int
    """Examples in the whole training; the last update is cut to it."""

    def probabilities(self, step: int) -> FloatArray:
        return power_probabilities(self._sizes().astype(np.float64), 1.0)

    def seek(self, step: int, cursors: IntArray) -> None:
        """Nothing to do: any update follows from its number alone."""

    def plan(self, step: int) -> UpdatePlan:
        """See ``UpdatePlanner``; the slots stand in the merged order."""
        tasks, places = self._slots(step * self.rows, min((step + 1) * self.rows, self.examples))
        rows, lengths = np.empty_like(tasks), np.empty_like(tasks)
        for task in np.unique(tasks):
            slots, stream = tasks == task, self.streams[task]
            chosen = stream.chosen(places[slots])
            rows[slots], lengths[slots] = stream.rows[chosen], stream.lengths[chosen]
        return UpdatePlan(step, tasks, rows, lengths)

    def cursors(self, step: int) -> IntArray:
        """Examples of each task (K,) before ``step``."""
        counts = self._sizes()
        epoch, place = divmod(min(step * self.rows, self.examples), int(counts.sum()))
        return np.asarray(epoch * counts + counts_before(place, counts, self.seed, epoch), dtype=np.int64)

    def _sizes(self) -> IntArray:
        return np.array([stream.size for stream in self.streams], dtype=np.int64)

    def _slots(self, start: int, stop: int) -> tuple[IntArray, IntArray]:
        counts = self._sizes()
        epoch_size = int(counts.sum())
        tasks, places = [], []
        while start < stop:
            epoch, place = divmod(start, epoch_size)
            end = min(epoch_size, place + stop - start)
            task, item = merged_slice(place, end, counts, self.seed, epoch)
            tasks.append(task)
            places.append(item + epoch * counts[task])
            start += end - place
        return np.concatenate(tasks), np.concatenate(places)
