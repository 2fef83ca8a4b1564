"""Kinds of components that a plug-in adds: known to configs from then on, under a name of their own."""

from typing import Any, Literal, get_args, get_origin

from mtl.config.encoder import HEADS, HeadSettings
from mtl.config.run import rebuild_models
from mtl.config.sampling import SAMPLINGS, SamplingSettings
from mtl.config.settings import Settings
from mtl.config.weighting import WEIGHTINGS, WeightingSettings
from mtl.errors import ConfigError


def register_sampling(kind: str, settings: type[SamplingSettings]) -> None:
    """Make ``sampling.kind: <kind>`` valid. Raises ConfigError for a taken name or a type that does not fit it."""
    _register(SAMPLINGS, kind, settings, SamplingSettings)


def register_weighting(kind: str, settings: type[WeightingSettings]) -> None:
    """Make ``weighting.kind: <kind>`` valid; errors as in :func:`register_sampling`."""
    _register(WEIGHTINGS, kind, settings, WeightingSettings)


def register_head(kind: str, settings: type[HeadSettings]) -> None:
    """Make ``head.kind: <kind>`` valid; errors as in :func:`register_sampling`."""
    _register(HEADS, kind, settings, HeadSettings)


def _register(registry: dict[str, type[Settings]], kind: str, settings: Any, base: type[Settings]) -> None:
    if kind in registry:
        raise ConfigError(f"{kind}: is registered already, as {registry[kind].__name__}. Choose another name.")
    if not (isinstance(settings, type) and issubclass(settings, base)):
        raise ConfigError(f"{kind}: its settings must be a subclass of {base.__name__}, not {settings!r}.")
    field = settings.model_fields.get("kind")
    annotation = field.annotation if field is not None else None
    if get_origin(annotation) is not Literal or get_args(annotation) != (kind,):
        raise ConfigError(f"{kind}: {settings.__name__} must have the field `kind: Literal[{kind!r}] = {kind!r}`.")
    registry[kind] = settings
    rebuild_models()
