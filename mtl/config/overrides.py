"""Which settings that somebody asked for are lost again, because others take their place."""

import operator
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from mtl.config.encoder import ENCODERS, HEADS
from mtl.config.merge import merge
from mtl.config.sampling import SAMPLINGS, SCHEDULES
from mtl.config.settings import Settings, keys_of
from mtl.config.weighting import WEIGHTINGS

KINDS: Mapping[str, Mapping[str, type[Settings]]] = {
    "sampling": SAMPLINGS,
    "schedule": SCHEDULES,
    "weighting": WEIGHTINGS,
    "encoder": ENCODERS,
    "head": HEADS,
}
"""The kinds that a field's settings come in."""


def dropped(asked: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The dotted keys that were ``asked`` for, are in ``before``, and no longer in ``after``, where they would fit.

    Such as ``sampling.sizes`` once another kind of sampling was named, which begins its settings anew: that kind has
    sizes as well. What no longer fits its kind, as a temperature of uniform sampling, is gone for a reason.
    """
    return [".".join(path) for path in _dropped(asked, before, after, ())]


def _dropped(
    asked: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], parents: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    for key, value in asked.items():
        if key not in before:
            continue
        if key in after:
            parts = (value, before[key], after[key])
            if all(isinstance(part, Mapping) for part in parts):
                yield from _dropped(*parts, (*parents, key))
        elif parents and key != "kind" and _has(parents[-1], after.get("kind"), key):
            yield (*parents, key)


def _has(field: str, kind: object, key: str) -> bool:
    settings = KINDS.get(field, {}).get(str(kind))
    return settings is not None and key in keys_of(settings)


def is_lost(layer: Mapping[str, Any], merged: Mapping[str, Any]) -> bool:
    """Whether ``merged``, which ``layer`` went into, says something else by now."""
    return merge(merged, layer) != merged


def unset_in_vain(layer: Mapping[str, Any], merged: Mapping[str, Any]) -> list[str]:
    """The keys, dotted, that ``layer`` unsets and of which ``merged``, which it went into, has parts again.

    Such a document no longer says that what is below it has to go.
    """
    replaced = _replaced(merged, layer)
    return [".".join(path) for path in replaced if reduce(operator.getitem, path, layer) is None]


def _replaced(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The paths of the mappings in ``lower`` in whose place ``upper`` has something else."""
    for key, value in upper.items():
        below = lower.get(key)
        if not isinstance(below, Mapping):
            continue
        if isinstance(value, Mapping):
            yield from ((key, *rest) for rest in _replaced(below, value))
        elif not (key in KINDS and isinstance(value, str)):
            yield (key,)
