"""From weighting settings to a weighting; a plug-in adds a kind by an entry of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtl.config.weighting import (
    ConstantWeighting,
    MuppetWeighting,
    ScheduledWeighting,
    SizeWeighting,
    WeightingSettings,
)
from mtl.errors import ConfigError
from mtl.sampling.names import check_names
from mtl.tasks.spec import TaskSpec
from mtl.weighting.constant import ConstantWeights
from mtl.weighting.muppet import muppet_weights
from mtl.weighting.protocol import Weighting
from mtl.weighting.scheduled import ScheduledWeights
from mtl.weighting.size import size_weights

Factory = Callable[[Any, Sequence[TaskSpec], Mapping[str, int], int], Weighting]
"""(settings, specs, sizes, total) as in ``make_weighting``; the settings are of the kind's own type."""


def _constant(
    settings: ConstantWeighting, specs: Sequence[TaskSpec], sizes: Mapping[str, int], total: int
) -> Weighting:
    return ConstantWeights(_by_name("weighting.weights", settings.weights, specs))


def _size(settings: SizeWeighting, specs: Sequence[TaskSpec], sizes: Mapping[str, int], total: int) -> Weighting:
    rows = [sizes[spec.name] for spec in specs]
    try:
        return ConstantWeights(size_weights(rows, settings.rule, settings.exponent))
    except ValueError as error:
        raise ConfigError(f"weighting: {error}; choose another weighting.rule, or leave that task out") from error


def _muppet(settings: MuppetWeighting, specs: Sequence[TaskSpec], sizes: Mapping[str, int], total: int) -> Weighting:
    return ConstantWeights(muppet_weights(specs, settings.regression_weight))


def _scheduled(
    settings: ScheduledWeighting, specs: Sequence[TaskSpec], sizes: Mapping[str, int], total: int
) -> Weighting:
    start = _by_name("weighting.start", settings.start, specs)
    end = _by_name("weighting.end", settings.end, specs)
    return ScheduledWeights(start, end, total, shape=settings.shape, step_at=settings.step_at)


WEIGHTINGS: dict[str, Factory] = {
    "constant": _constant,
    "size": _size,
    "muppet": _muppet,
    "schedule": _scheduled,
}


def make_weighting(
    settings: WeightingSettings, specs: Sequence[TaskSpec], sizes: Mapping[str, int], total: int
) -> Weighting:
    """The weighting of a training of ``total`` updates over ``specs``, in the order of their task indices.

    ``sizes`` are training rows by task name. ConfigError for a kind without a weighting, for weights that name a task
    which is not trained, and for a rule that the tasks do not allow.
    """
    if settings.kind not in WEIGHTINGS:
        raise ConfigError(
            f"weighting.kind {settings.kind!r} has settings but no weighting; known are {', '.join(sorted(WEIGHTINGS))}"
        )
    return WEIGHTINGS[settings.kind](settings, specs, sizes, total)


def register_weighting(kind: str, factory: Factory) -> None:
    """Add a weighting under ``kind``; a kind that exists is refused."""
    if kind in WEIGHTINGS:
        raise ConfigError(f"a weighting called {kind!r} exists already; choose another name")
    WEIGHTINGS[kind] = factory


def _by_name(setting: str, weights: Mapping[str, float], specs: Sequence[TaskSpec]) -> list[float]:
    names = [spec.name for spec in specs]
    check_names(setting, weights, names)
    return [weights.get(name, 1.0) for name in names]
