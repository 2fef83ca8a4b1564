"""Updates drawn by a sampler: its tasks, and for each task the next examples of its stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import RLock

import numpy as np

from mtl.data.plan import UpdatePlan, next_examples
from mtl.data.streams import TaskStream
from mtl.random_streams import generator
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray, Sampler

_KEPT = 64
"""Steps whose positions are kept: more than the updates that are prepared ahead of the one being trained."""


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
    """Plans updates from a sampler's draws; any step can be asked for, those near the last one cost no replay.

    The draw of a step depends on (seed, step) alone. Where each task's stream stands before a step follows from the
    counts of the steps before it; the positions of the last few steps asked for are kept. Threads may share a planner.
    """

    seed: int
    total: int
    streams: Sequence[TaskStream]
    sampler: Sampler
    size: UpdateSize
    _known: dict[int, IntArray] = field(default_factory=dict, init=False, repr=False)
    _lock: RLock = field(default_factory=RLock, init=False, repr=False)

    def cursors(self, step: int) -> IntArray:
        """Examples of each task (K,) used before ``step``; cheap for the last steps asked for and the next one."""
        with self._lock:
            at = max((known for known in self._known if known <= step), default=0)
            cursors = self._known.get(at, np.zeros(len(self.streams), dtype=np.int64))
            while at < step:
                cursors = cursors + self._counts(at, cursors)
                at += 1
                self._remember(at, cursors)
            return cursors.copy()

    def seek(self, step: int, cursors: IntArray) -> None:
        """Continue from a saved position without replaying the steps before it."""
        with self._lock:
            self._remember(step, cursors.astype(np.int64))

    def _remember(self, step: int, cursors: IntArray) -> None:
        self._known[step] = cursors
        if len(self._known) > _KEPT:
            # A dictionary keeps the order of insertion, so its first key is the oldest.
            del self._known[next(iter(self._known))]

    def probabilities(self, step: int) -> FloatArray:
        return self.sampler.probabilities(step, self.total)

    def plan(self, step: int) -> UpdatePlan:
        """See ``UpdatePlanner``; the slots are ordered as :func:`mtl.data.plan.next_examples` says."""
        with self._lock:
            return self._plan(step, self.cursors(step))

    def _plan(self, step: int, cursors: IntArray) -> UpdatePlan:
        counts = self._counts(step, cursors)
        self._remember(step + 1, cursors + counts)
        return next_examples(step, self.streams, cursors, counts)

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
        shares: FloatArray
        if self.size.groups is None:
            shares = self.sampler.probabilities(step, self.total)
        else:
            tasks = self.sampler.draw(step, self.total, self.size.groups, draws)
            shares = np.bincount(tasks, minlength=len(self.streams)).astype(np.float64) / self.size.groups
        counts = np.zeros(len(self.streams), dtype=np.int64)
        for task in np.flatnonzero(shares).tolist():
            counts[task] = _examples_within(self.streams[task], int(cursors[task]), tokens * float(shares[task]), draws)
        return counts


def _examples_within(stream: TaskStream, start: int, budget: float, draws: np.random.Generator) -> int:
    """Examples from ``start`` on whose expected number of tokens is ``budget``."""
    count = 0
    while True:
        chunk = 1 + int(budget / stream.mean_length)
        lengths = stream.lengths[stream.chosen(np.arange(start + count, start + count + chunk))]
        within = int(np.searchsorted(np.cumsum(lengths), budget, side="right"))
        count += within
        budget -= float(lengths[:within].sum())
        if within < lengths.size:
            return count + int(draws.random() < budget / float(lengths[within]))
