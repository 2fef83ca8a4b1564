"""An update ready to be run: its batches, and the numbers of the whole update that losses are normalised by."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.plan import UpdatePlanner, micro_batches_needed, split_plan
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class PreparedUpdate:
    """``counts`` and ``tokens`` (K,) are of the whole update; ``shares`` (K,) are the tasks' parts of its unit."""

    step: int
    counts: IntArray
    tokens: IntArray
    shares: FloatArray
    batches: list[PackedBatch]


@dataclass(frozen=True)
class Preparation:
    """How plans become batches: where the rows lie, and how an update is cut up."""

    source: BatchSource
    unit: str
    """``rows`` or ``tokens``: what an update is sized in."""
    micro_batches: int
    tokens_per_micro_batch: int
    pin: bool

    def prepare(self, planner: UpdatePlanner, step: int) -> PreparedUpdate:
        """Update ``step``, its batches in memory (page-locked if asked)."""
        plan = planner.plan(step)
        tasks = len(self.source.stores)
        counts, tokens = plan.counts(tasks), plan.tokens(tasks)
        unit = tokens if self.unit == "tokens" else counts
        needed = micro_batches_needed(plan, 1, self.micro_batches, self.tokens_per_micro_batch)
        parts = [slots for slots in split_plan(plan, 1, needed)[0] if slots.size]
        batches = [self.source.batch(plan, slots) for slots in parts]
        if self.pin:
            batches = [batch.pin() for batch in batches]
        return PreparedUpdate(step, counts, tokens, np.asarray(unit / unit.sum(), dtype=np.float64), batches)


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
