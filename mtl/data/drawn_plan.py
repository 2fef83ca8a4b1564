"""Updates drawn by a sampler: its tasks, and for each task the next examples of its stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mtl.data.plan import UpdatePlan
from mtl.data.streams import TaskStream
from mtl.random_streams import generator
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray, Sampler


@dataclass(frozen=True)
class UpdateSize:
    """How large an update is, in rows or in tokens, and of how many groups of one task each (None: one a row).

    A sampler's share p_t is the expected share of this unit. In tokens, a group takes examples up to its budget and
    the one that crosses it with the probability that makes the expectation exact.
    """

    rows: int | None
    tokens: int | None
    groups: int | None


@dataclass
class DrawnPlanner:
    """Plans updates from a sampler's draws; any step can be asked for, the next one costs no replay.

    The draw of a step depends on (seed, step) alone. Where each task's stream stands before a step follows from the
    counts of the steps before it; those of the step asked for last are kept.
    """

    seed: int
    total: int
    streams: Sequence[TaskStream]
    sampler: Sampler
    size: UpdateSize
    _step: int = field(default=0, init=False)
    _cursors: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._cursors = np.zeros(len(self.streams), dtype=np.int64)

    def cursors(self, step: int) -> IntArray:
        """Examples of each task (K,) used before ``step``; cheap for the step after the last one asked for."""
        if step < self._step:
            self._step, self._cursors = 0, np.zeros(len(self.streams), dtype=np.int64)
        while self._step < step:
            self._cursors = self._cursors + self._counts(self._step, self._cursors)
            self._step += 1
        return self._cursors

    def seek(self, step: int, cursors: IntArray) -> None:
        """Continue from a saved position without replaying the steps before it."""
        self._step, self._cursors = step, cursors.astype(np.int64)

    def plan(self, step: int) -> UpdatePlan:
        cursors = self.cursors(step)
        counts = self._counts(step, cursors)
        tasks, rows, lengths = [], [], []
        for task in np.flatnonzero(counts):
            stream = self.streams[task]
            chosen = stream.chosen(np.arange(cursors[task], cursors[task] + counts[task]))
            tasks.append(np.full(chosen.size, task, dtype=np.int64))
            rows.append(stream.rows[chosen])
            lengths.append(stream.lengths[chosen])
        self._step, self._cursors = step + 1, cursors + counts
        return UpdatePlan(step, np.concatenate(tasks), np.concatenate(rows), np.concatenate(lengths))

    def _counts(self, step: int, cursors: IntArray) -> IntArray:
        draws = generator(self.seed, "mixture", step)
        if self.size.rows is not None:
            return self._counts_in_rows(step, self.size.rows, draws)
        assert self.size.tokens is not None
        counts = np.zeros(len(self.streams), dtype=np.int64)
        while counts.sum() == 0:
            counts = self._counts_in_tokens(step, self.size.tokens, cursors, draws)
        return counts

    def _counts_in_rows(self, step: int, rows: int, draws: np.random.Generator) -> IntArray:
        groups = rows if self.size.groups is None else min(self.size.groups, rows)
        tasks = self.sampler.draw(step, self.total, groups, draws)
        sizes = np.full(groups, rows // groups)
        # Which groups get the odd rows is drawn, so that no place in the draw favours its task.
        sizes[draws.permutation(groups)[: rows % groups]] += 1
        return np.bincount(tasks, weights=sizes, minlength=len(self.streams)).astype(np.int64)

    def _counts_in_tokens(self, step: int, tokens: int, cursors: IntArray, draws: np.random.Generator) -> IntArray:
        budgets: FloatArray
        if self.size.groups is None:
            budgets = tokens * self.sampler.probabilities(step, self.total)
        else:
            tasks = self.sampler.draw(step, self.total, self.size.groups, draws)
            budgets = np.bincount(tasks, minlength=len(self.streams)) * (tokens / self.size.groups)
        counts = np.zeros(len(self.streams), dtype=np.int64)
        for task in np.flatnonzero(budgets):
            counts[task] = _examples_within(self.streams[task], int(cursors[task]), float(budgets[task]), draws)
        return counts


def _examples_within(stream: TaskStream, start: int, budget: float, draws: np.random.Generator) -> int:
    """Examples from ``start`` on whose expected number of tokens is ``budget``."""
    count = 0
    while True:
        chunk = 1 + int(budget / max(1.0, float(stream.lengths.mean())))
        lengths = stream.lengths[stream.chosen(np.arange(start + count, start + count + chunk))]
        within = int(np.searchsorted(np.cumsum(lengths), budget, side="right"))
        count += within
        budget -= float(lengths[:within].sum())
        if within < lengths.size:
            return count + int(draws.random() < budget / float(lengths[within]))
