"""Kinds of samplers, heads and weightings that a plug-in adds: their settings and what makes them, in one call each."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from mtl.config.encoder import HeadSettings
    from mtl.config.sampling import SamplingSettings
    from mtl.config.weighting import WeightingSettings
    from mtl.sampling.samplers import Sampler
    from mtl.tasks.spec import TaskSpec
    from mtl.weighting.protocol import Weighting


def register_sampler(
    name: str,
    settings: "type[SamplingSettings]",
    factory: "Callable[[Any, Mapping[str, int]], Sampler]",
) -> None:
    """Make ``sampling.kind: <name>`` valid and mean ``factory(settings, sizes)``, sizes being rows by task name."""
    from mtl.config.registry import register_sampling
    from mtl.sampling.registry import register_sampler as register_factory

    register_sampling(name, settings)
    register_factory(name, factory)


def register_head(
    name: str,
    settings: "type[HeadSettings]",
    factory: "Callable[[TaskSpec, int, Any], nn.Module]",
) -> None:
    """Make ``head.kind: <name>`` valid and mean ``factory(spec, width, settings)``, an ``mtl.models.heads.Head``."""
    from mtl.config.registry import register_head as register_settings
    from mtl.models.head_registry import register_head as register_factory

    register_settings(name, settings)
    register_factory(name, factory)


def register_weighting(
    name: str,
    settings: "type[WeightingSettings]",
    factory: "Callable[[Any, Sequence[TaskSpec], Mapping[str, int], int], Weighting]",
) -> None:
    """Make ``weighting.kind: <name>`` valid and mean ``factory(settings, specs, sizes, updates)``."""
    from mtl.config.registry import register_weighting as register_settings
    from mtl.weighting.registry import register_weighting as register_factory

    register_settings(name, settings)
    register_factory(name, factory)
