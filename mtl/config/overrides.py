"""How what is asked for, on a command line or by a study and its arms, is laid over what recipes say."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from mtl.config.merge import FIELDS_WITH_KINDS, merge


def lay_over(lower: Mapping[str, Any], layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """``lower`` as all ``layers`` change it together, so that `sampling.cap=5 sampling=proportional` is in any order.

    Later layers win. What a layer sets to null, or to something else than a mapping, is gone from ``lower`` even where
    a later layer sets a part of it again. Where a group in a stage's block, or in a task's override, says no kind, it
    is of the kind that holds for all stages. No argument is changed.
    """
    asked: dict[str, Any] = {}
    for layer in layers:
        for path in replaced_mappings(lower, layer):
            lower = _emptied(lower, path)
        asked = merge(asked, layer)
    return merge(_with_kinds(lower, asked), asked)


def naming_its_model(layer: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """``layer``, which says beside the known training data of an encoder, of whichever: the one that is ``below``.

    So that a later layer with another encoder does not inherit it.
    """
    encoder, before = layer.get("encoder"), merge(below, layer).get("encoder")
    if not (isinstance(encoder, Mapping) and isinstance(before, Mapping)) or "path" in encoder:
        return dict(layer)
    if "known_training_data" not in encoder:
        return dict(layer)
    named = {key: before[key] for key in ("kind", "path") if key in before}
    return {**layer, "encoder": {**named, **encoder}}


def is_lost(layer: Mapping[str, Any], merged: Mapping[str, Any]) -> bool:
    """Whether ``merged``, which ``layer`` went into, says something else by now."""
    return merge(merged, layer) != merged


def unset_in_vain(layer: Mapping[str, Any], merged: Mapping[str, Any]) -> list[str]:
    """The keys, dotted, that ``layer`` unsets and of which ``merged``, which it went into, has parts again.

    Such a document no longer says that what is below it has to go.
    """
    replaced = replaced_mappings(merged, layer)
    return [".".join(path) for path in replaced if reduce(operator.getitem, path, layer) is None]


def replaced_mappings(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The paths of the mappings in ``lower`` in whose place ``upper`` has something else."""
    for key, value in upper.items():
        below = lower.get(key)
        if not isinstance(below, Mapping):
            continue
        if isinstance(value, Mapping):
            yield from ((key, *rest) for rest in replaced_mappings(below, value))
        elif not (key in FIELDS_WITH_KINDS and isinstance(value, str)):
            yield (key,)


def _emptied(document: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    key, *rest = path
    return {**document, key: _emptied(document[key], tuple(rest)) if rest else None}


def _with_kinds(document: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """The document, a kind said in its groups that have none of their own and are given one by ``upper``."""
    groups = {field: document.get(field) for field in FIELDS_WITH_KINDS}
    kinds = {field: group["kind"] for field, group in groups.items() if isinstance(group, Mapping) and "kind" in group}
    return _told(document, upper, kinds)


def _told(lower: Mapping[str, Any], upper: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    told = dict(lower)
    for key, value in upper.items():
        below = lower.get(key)
        if not (isinstance(below, Mapping) and isinstance(value, Mapping)):
            continue
        if key not in FIELDS_WITH_KINDS:
            told[key] = _told(below, value, kinds)
        elif key in kinds and "kind" in value:
            told[key] = {"kind": kinds[key], **below}
    return told
