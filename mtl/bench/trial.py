"""A short training that is thrown away: it fills the caches, tells how long an update takes and where its time goes."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, cast

import torch

from mtl.bench.profile import profile_operators
from mtl.bench.records import Trial
from mtl.bench.start import Start, describe_start
from mtl.stages.build import Parts, build_parts
from mtl.training.optimizer import Optimizer
from mtl.training.prepared import PreparedUpdate, prefetched
from mtl.training.tracking import synchronise

WARMUP, MOST_UPDATES, PROFILED = 3, 20, 5
TRIAL_UPDATES = WARMUP + MOST_UPDATES + PROFILED
_SECONDS = 4.0
_FEWEST = 3


def run_trial(start: Start, *, profile: bool, clock: Callable[[], float] = time.perf_counter) -> Trial:
    """Up to twenty updates after the first few, their parts timed one by one, for a few seconds at most.

    Here the host waits for the device after every part, which a training does not: the split is of the work, and its
    sum longer than an update's time in training. With ``profile`` a few more updates are listed by operator.
    """
    parts = build_parts(start.context, start.unit)
    rows, tokens = 0, 0
    with closing(prefetched(parts.preparation, parts.planner, 0)) as updates:
        for _ in range(WARMUP):
            parts.updater.run(next(updates))
        split = _Split(parts, start.hardware.device, clock)
        while split.updates < MOST_UPDATES and (split.updates < _FEWEST or split.seconds < _SECONDS):
            update = split.run_next(updates)
            rows, tokens = rows + int(update.counts.sum()), tokens + int(update.tokens.sum())
        split.close()
        operators = profile_operators(parts.updater, updates, PROFILED, start.hardware.device) if profile else ()
    return Trial(
        setting=describe_start(start, sum(parameter.numel() for parameter in parts.model.parameters())),
        seconds_per_update=statistics.median(split.wholes),
        rows_per_update=rows / split.updates,
        tokens_per_update=tokens / split.updates,
        time_split=split.shares(),
        profile=operators,
    )


class _Split:
    """Times waiting for data, forward passes and the optimiser; what is left of an update is its backward passes."""

    def __init__(self, parts: Parts, device: torch.device, clock: Callable[[], float]) -> None:
        self._updater, self._device, self._clock = parts.updater, device, clock
        self.wholes: list[float] = []
        self._sums = {"data_wait": 0.0, "forward": 0.0, "backward": 0.0, "optimiser": 0.0}
        self._forward_began = 0.0
        self._hooks = [
            parts.model.register_forward_pre_hook(self._before_forward),
            parts.model.register_forward_hook(self._after_forward),
        ]
        self._optimizer = parts.updater.optimizer
        parts.updater.optimizer = cast("Optimizer", _TimedOptimizer(self._optimizer, self._timed_optimiser))

    @property
    def updates(self) -> int:
        """Updates timed so far."""
        return len(self.wholes)

    @property
    def seconds(self) -> float:
        """Their time."""
        return sum(self.wholes)

    def run_next(self, updates: Iterator[PreparedUpdate]) -> PreparedUpdate:
        """Wait for an update and run it."""
        began = self._now()
        before = dict(self._sums)
        update = next(updates)
        self._sums["data_wait"] += self._now() - began
        self._updater.run(update)
        whole = self._now() - began
        self.wholes.append(whole)
        self._sums["backward"] += whole - sum(self._sums[name] - before[name] for name in before)
        return update

    def shares(self) -> dict[str, float]:
        """Each part's share of the whole."""
        return {name: seconds / self.seconds for name, seconds in self._sums.items()}

    def close(self) -> None:
        """Leave model and updater as they were."""
        for hook in self._hooks:
            hook.remove()
        self._updater.optimizer = self._optimizer

    def _before_forward(self, *_: Any) -> None:
        self._forward_began = self._now()

    def _after_forward(self, *_: Any) -> None:
        self._sums["forward"] += self._now() - self._forward_began

    def _timed_optimiser(self, action: Callable[[], Any]) -> Any:
        began = self._now()
        result = action()
        self._sums["optimiser"] += self._now() - began
        return result

    def _now(self) -> float:
        synchronise(self._device)
        return self._clock()


class _TimedOptimizer:
    """The optimiser, its norm and its step under a clock."""

    def __init__(self, optimizer: Optimizer, timed: Callable[[Callable[[], Any]], Any]) -> None:
        self._optimizer, self._timed = optimizer, timed

    def norm(self) -> Any:
        return self._timed(self._optimizer.norm)

    def step(self, *arguments: Any) -> Any:
        return self._timed(lambda: self._optimizer.step(*arguments))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)
