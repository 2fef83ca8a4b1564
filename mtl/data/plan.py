"""Which examples make up an update: planned the same on every rank, before any of them is loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mtl.data.streams import TaskStream
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class UpdatePlan:
    """The examples of one update, one slot each: task index, row in the source split and length in tokens, all (B,)."""

    step: int
    tasks: IntArray
    rows: IntArray
    lengths: IntArray

    def counts(self, tasks: int) -> IntArray:
        """Examples of each task (K,)."""
        return np.bincount(self.tasks, minlength=tasks).astype(np.int64)

    def tokens(self, tasks: int) -> IntArray:
        """Tokens of each task (K,)."""
        return np.bincount(self.tasks, weights=self.lengths, minlength=tasks).astype(np.int64)


def next_examples(step: int, streams: Sequence[TaskStream], cursors: IntArray, counts: IntArray) -> UpdatePlan:
    """The update of ``counts`` (K,) examples of each task, from where its stream stands: ``cursors`` (K,).

    The slots are ordered by task, each task's in the order of its stream; at least one count is not 0.
    """
    tasks, rows, lengths = [], [], []
    for task in np.flatnonzero(counts).tolist():
        stream = streams[task]
        chosen = stream.chosen(np.arange(cursors[task], cursors[task] + counts[task]))
        tasks.append(np.full(chosen.size, task, dtype=np.int64))
        rows.append(stream.rows[chosen])
        lengths.append(stream.lengths[chosen])
    return UpdatePlan(step, np.concatenate(tasks), np.concatenate(rows), np.concatenate(lengths))


class UpdatePlanner(Protocol):
    """The updates of one training, by number. Asking twice for a step, or out of order, gives the same plan."""

    @property
    def total(self) -> int:
        """Updates in the training."""
        ...

    @property
    def streams(self) -> Sequence[TaskStream]:
        """The tasks' streams, in the order of the task indices."""
        ...

    def probabilities(self, step: int) -> FloatArray:
        """Expected share (K,) of each task in the unit of update ``step``."""
        ...

    def seek(self, step: int, cursors: IntArray) -> None:
        """Continue at ``step``, before which the tasks' streams stood at ``cursors`` (K,), without a replay."""
        ...

    def plan(self, step: int) -> UpdatePlan:
        """The examples of update ``step``, 0 to ``total - 1``."""
        ...

    def cursors(self, step: int) -> IntArray:
        """How many examples of each task (K,) all updates before ``step`` hold."""
        ...


def split_plan(plan: UpdatePlan, ranks: int, micro_batches: int) -> list[list[IntArray]]:
    """Slots of each rank and micro-batch, balanced by tokens, no example cut; a part is empty if there are too few.

    Longest first, each to the part with the fewest tokens so far (Graham 1969). Pure: every rank computes the same.
    """
    parts: list[list[int]] = [[] for _ in range(ranks * micro_batches)]
    loads = np.zeros(len(parts), dtype=np.int64)
    for slot in np.argsort(-plan.lengths, kind="stable"):
        lightest = int(np.argmin(loads))
        parts[lightest].append(int(slot))
        loads[lightest] += plan.lengths[slot]
    slots = [np.array(sorted(part), dtype=np.int64) for part in parts]
    return [slots[rank * micro_batches : (rank + 1) * micro_batches] for rank in range(ranks)]


def micro_batches_needed(plan: UpdatePlan, ranks: int, at_least: int, tokens_at_most: int) -> int:
    """The fewest micro-batches, ``at_least`` or more, that keep to the token limit, a lone longer example apart."""
    by_tokens = -(-int(plan.lengths.sum()) // (tokens_at_most * ranks))
    count = max(at_least, min(by_tokens, -(-plan.lengths.size // ranks)))
    while count < plan.lengths.size and _largest(plan, split_plan(plan, ranks, count)) > tokens_at_most:
        count += 1
    return count


def _largest(plan: UpdatePlan, parts: Sequence[Sequence[IntArray]]) -> int:
    """Tokens of the fullest part that holds more than one example: a lone example cannot be split further."""
    return max((int(plan.lengths[slots].sum()) for rank in parts for slots in rank if slots.size > 1), default=0)
