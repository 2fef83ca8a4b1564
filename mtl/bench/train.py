"""A training of this project under the clock: its own loop, prefetching and updates, nothing evaluated or saved."""

import time
from collections.abc import Callable
from contextlib import closing

import torch
from torch import Tensor

from mtl.bench.memory import forget_peak, peak_memory
from mtl.bench.peak import measure_peak
from mtl.bench.records import Peak, TrainingMeasure
from mtl.bench.start import Start
from mtl.sampling.samplers import IntArray
from mtl.stages.build import Parts, build_parts
from mtl.training.flops import FlopCounter
from mtl.training.loop import run_updates
from mtl.training.prepared import prefetched
from mtl.training.tracking import synchronise
from mtl.training.update import UpdateResult

Clock = Callable[[], float]
PeakMeasure = Callable[[], float]


def measure_training(
    start: Start,
    warmup: int,
    began: float,
    *,
    clock: Clock = time.perf_counter,
    peak: PeakMeasure | None = None,
) -> TrainingMeasure:
    """Train to the end of the plan; the clock runs from the end of the first ``warmup`` (1 or more) updates.

    Data and optimiser count, loading and warm-up do not. ``began``: the clock's reading from which the time to the
    first update counts. Peak matrix products (``peak``, by default measured on the device) run right before and after.
    """
    device = start.hardware.device
    parts = build_parts(start.context, start.unit)
    measure = peak or (lambda: measure_peak(device, start.precision))
    watch = _Watch(parts, device, warmup, clock, measure)
    with closing(prefetched(parts.preparation, parts.planner, 0)) as updates:
        run_updates(updates, parts.updater, watch.after_update)
    return watch.result(began)


class _Watch:
    """Reads the clock after the updates where something begins or ends, and sums up what lies between."""

    def __init__(self, parts: Parts, device: torch.device, warmup: int, clock: Clock, peak: PeakMeasure) -> None:
        self._parts, self._device, self._warmup = parts, device, warmup
        self._clock, self._peak = clock, peak
        self._counter = FlopCounter.of(parts.model)
        self._done = self._rows = self._tokens = 0
        self._flops = self._first = self._start = self._end = self._before = 0.0
        self._losses: list[tuple[IntArray, Tensor]] = []

    def after_update(self, result: UpdateResult) -> bool:
        """Count the update if it was timed; never ends the training."""
        self._done += 1
        if self._done == 1:
            self._first = self._now()
        if self._done > self._warmup:
            self._rows += int(result.update.counts.sum())
            self._tokens += int(result.update.tokens.sum())
            self._flops += self._counter.training(result.update.work)
            # A copy, which stays on the device: reading a loss here would make the host wait.
            self._losses.append((result.update.counts, result.losses.detach().clone()))
        if self._done == self._warmup:
            synchronise(self._device)
            self._before = self._peak()
            forget_peak(self._device)
            self._start = self._now()
        if self._done == self._parts.planner.total:
            self._end = self._now()
        return False

    def result(self, began: float) -> TrainingMeasure:
        """What was measured; to be asked for once the training is over."""
        memory = peak_memory(self._device)
        return TrainingMeasure(
            updates=len(self._losses),
            seconds=self._end - self._start,
            rows=self._rows,
            tokens=self._tokens,
            padded_tokens=self._tokens,
            flops=self._flops,
            losses=tuple(mean_over_rows(counts, losses) for counts, losses in self._losses),
            seconds_to_first_update=self._first - began,
            peak_memory_bytes=memory,
            peak=Peak(before=self._before, after=self._peak()),
        )

    def _now(self) -> float:
        synchronise(self._device)
        return self._clock()


def mean_over_rows(counts: IntArray, losses: Tensor) -> float:
    """The mean loss over all rows of an update from its tasks' means (K,), of which absent tasks have none."""
    values: list[float] = losses.tolist()
    return sum(int(count) * value for count, value in zip(counts, values, strict=True) if count) / int(counts.sum())
