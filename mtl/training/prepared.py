"""An update ready to be run: its batches, and the numbers of the whole update that losses are normalised by."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from mtl.data.batches import BatchSource, PackedBatch, UpdateWork
from mtl.data.plan import UpdatePlan, UpdatePlanner, micro_batches_needed, split_plan
from mtl.errors import MtlError
from mtl.runtime.ranks import ALONE, Ranks
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class PreparedUpdate:
    """This rank's batches of an update, and numbers of the whole update over all ranks and micro-batches.

    ``counts`` and ``tokens`` (K,); ``shares`` (K,) are the tasks' parts of its unit. Every rank has cut its part into
    ``micro_batches``, of which those without examples are not in ``batches``. ``work``: what its cost is counted from.
    """

    plan: UpdatePlan
    counts: IntArray
    tokens: IntArray
    shares: FloatArray
    work: UpdateWork
    micro_batches: int
    batches: list[PackedBatch]

    @property
    def step(self) -> int:
        """The update's number, from 0."""
        return self.plan.step


@dataclass(frozen=True)
class Preparation:
    """How plans become batches: where the rows lie, and how an update is cut up."""

    source: BatchSource
    unit: str
    """``rows`` or ``tokens``: what an update is sized in."""
    micro_batches: int
    tokens_per_micro_batch: int
    pin: bool
    ranks: Ranks = ALONE

    def prepare(self, planner: UpdatePlanner, step: int) -> PreparedUpdate:
        """Update ``step``, this rank's batches of it in memory (page-locked if asked)."""
        plan = planner.plan(step)
        tasks = len(self.source.stores)
        counts, tokens = plan.counts(tasks), plan.tokens(tasks)
        unit = tokens if self.unit == "tokens" else counts
        needed = micro_batches_needed(plan, self.ranks.size, self.micro_batches, self.tokens_per_micro_batch)
        return PreparedUpdate(
            plan,
            counts,
            tokens,
            np.asarray(unit / unit.sum(), dtype=np.float64),
            self.source.work(plan),
            needed,
            self._batches(plan, needed),
        )

    def most_micro_batches(self, update: PreparedUpdate) -> int:
        """How many micro-batches leave the fullest rank one example in each."""
        return -(-update.plan.rows.size // self.ranks.size)

    def halved(self, update: PreparedUpdate) -> PreparedUpdate:
        """The same update in twice as many micro-batches, or as many as it has examples; the same on every rank.

        Raises MtlError where every micro-batch holds one example already.
        """
        most = self.most_micro_batches(update)
        if update.micro_batches >= most:
            error = MtlError(
                f"out of memory at update {update.step}, with one example in each micro-batch; lower data.max_length, "
                "or use a smaller encoder or more memory"
            )
            error.reported_elsewhere = not self.ranks.first
            raise error
        more = min(2 * update.micro_batches, most)
        return replace(update, micro_batches=more, batches=self._batches(update.plan, more))

    def _batches(self, plan: UpdatePlan, micro_batches: int) -> list[PackedBatch]:
        parts = split_plan(plan, self.ranks.size, micro_batches)[self.ranks.rank]
        batches = [self.source.batch(plan, slots) for slots in parts if slots.size]
        return [batch.pin() for batch in batches] if self.pin else batches


def prefetched(
    preparation: Preparation, planner: UpdatePlanner, start: int, depth: int = 2
) -> Generator[PreparedUpdate, None, None]:
    """Updates ``start`` to the end, prepared on a thread up to ``depth`` ahead; an error there is raised here."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch")
    waiting: deque[Future[PreparedUpdate]] = deque()
    try:
        for step in range(start, planner.total):
            waiting.append(executor.submit(preparation.prepare, planner, step))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Whoever stops early, or after an error, waits for the update being prepared and for no other.
        executor.shutdown(cancel_futures=True)
