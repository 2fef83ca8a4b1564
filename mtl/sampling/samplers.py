"""The samplers: from the number of an update to the tasks that its groups of examples come from."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mtl.config.sampling import ConstantSchedule, ScheduleSettings
from mtl.sampling.probabilities import FloatArray, power_probabilities
from mtl.sampling.schedules import exponent_at

IntArray = npt.NDArray[np.int64]


class Sampler(Protocol):
    """Decides the tasks of an update; a pure function of its settings, the task sizes and the update's number."""

    def probabilities(self, step: int, total: int) -> FloatArray:
        """Expected share (K,) of each task in update ``step`` of ``total``; sums to 1."""
        ...

    def draw(self, step: int, total: int, groups: int, generator: np.random.Generator) -> IntArray:
        """The task (index) of each of the update's ``groups`` equal parts, (groups,)."""
        ...


@dataclass(frozen=True)
class PowerSampler:
    """Independent draws with shares in proportion to capped sizes raised to a scheduled exponent."""

    sizes: FloatArray
    exponent: float
    cap: float | None = None
    schedule: ScheduleSettings = field(default_factory=ConstantSchedule)

    def probabilities(self, step: int, total: int) -> FloatArray:
        return power_probabilities(self.sizes, exponent_at(self.schedule, self.exponent, step, total), self.cap)

    def draw(self, step: int, total: int, groups: int, generator: np.random.Generator) -> IntArray:
        return _draw_independently(self.probabilities(step, total), groups, generator)


@dataclass(frozen=True)
class FixedSampler:
    """Independent draws with shares (K,) that never change."""

    shares: FloatArray

    def probabilities(self, step: int, total: int) -> FloatArray:
        return np.asarray(self.shares / self.shares.sum(), dtype=np.float64)

    def draw(self, step: int, total: int, groups: int, generator: np.random.Generator) -> IntArray:
        return _draw_independently(self.probabilities(step, total), groups, generator)


@dataclass(frozen=True)
class RoundRobinSampler:
    """The tasks in turn, counted over groups, so that every task comes up whatever the number of groups."""

    tasks: int

    def probabilities(self, step: int, total: int) -> FloatArray:
        return np.full(self.tasks, 1.0 / self.tasks)

    def draw(self, step: int, total: int, groups: int, generator: np.random.Generator) -> IntArray:
        return (step * groups + np.arange(groups, dtype=np.int64)) % self.tasks


def _draw_independently(shares: FloatArray, groups: int, generator: np.random.Generator) -> IntArray:
    return generator.choice(shares.size, size=groups, p=shares).astype(np.int64)
