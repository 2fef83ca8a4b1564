"""From sampling settings to a sampler; a plug-in adds a kind by an entry of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mtl.config.sampling import SamplingSettings
from mtl.errors import ConfigError
from mtl.sampling.names import check_names
from mtl.sampling.samplers import FixedSampler, PowerSampler, RoundRobinSampler, Sampler

Factory = Callable[[Any, Mapping[str, int]], Sampler]


def _fixed(settings: Any, sizes: Mapping[str, int]) -> Sampler:
    check_names("sampling.shares", settings.shares, sizes.keys())
    return FixedSampler(np.array([settings.shares.get(task, 1.0) for task in sizes]))


SAMPLERS: dict[str, Factory] = {
    "uniform": lambda settings, sizes: PowerSampler(_array(sizes), 0.0),
    "proportional": lambda settings, sizes: PowerSampler(_array(sizes), 1.0, settings.cap),
    "power": lambda settings, sizes: PowerSampler(_array(sizes), settings.exponent, settings.cap, settings.schedule),
    "temperature": lambda settings, sizes: PowerSampler(
        _array(sizes), 1.0 / settings.temperature, settings.cap, settings.schedule
    ),
    "fixed": _fixed,
    "round_robin": lambda settings, sizes: RoundRobinSampler(len(sizes)),
    # Shares follow from taking every example once; the order itself is made by the planner.
    "exact_epoch": lambda settings, sizes: PowerSampler(_array(sizes), 1.0),
    # For a model of one task, which has nothing to replay; for several the planner itself repeats the counts.
    "replay": lambda settings, sizes: PowerSampler(_array(sizes), 1.0),
}


def make_sampler(settings: SamplingSettings, sizes: Mapping[str, int]) -> Sampler:
    """The sampler over the tasks of ``sizes`` (task name to training rows), in that order.

    ConfigError for a kind without a sampler, and for shares that name a task which is not trained.
    """
    if settings.kind not in SAMPLERS:
        known = ", ".join(known_samplers())
        raise ConfigError(f"sampling.kind {settings.kind!r} has settings but no sampler; known are {known}")
    return SAMPLERS[settings.kind](settings, sizes)


def register_sampler(kind: str, factory: Factory) -> None:
    """Add a sampler under ``kind``; a kind that exists is refused."""
    if kind in SAMPLERS:
        raise ConfigError(f"a sampler called {kind!r} exists already; choose another name")
    SAMPLERS[kind] = factory


def known_samplers() -> Sequence[str]:
    """The kinds in alphabetical order."""
    return sorted(SAMPLERS)


def _array(sizes: Mapping[str, int]) -> Any:
    return np.array(list(sizes.values()), dtype=np.float64)
