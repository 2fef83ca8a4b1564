"""How a later layer of settings changes an earlier one."""

from collections.abc import Mapping
from typing import Any

from mtl.config.training import ALTERNATIVES

# Fields whose settings come in kinds, for which `sampling: uniform` is short for `sampling: {kind: uniform}`.
FIELDS_WITH_KINDS = frozenset({"sampling", "schedule", "weighting", "encoder", "head"})


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """A new document with everything that ``upper`` sets, and of ``lower`` what ``upper`` leaves alone.

    Mappings merge key by key; lists, text and None replace. Where ``upper`` names a ``kind`` that ``lower`` does not
    have, nothing of ``lower`` stays, since its keys belong to another kind. Setting one of two ALTERNATIVES drops the
    other from ``lower``; both set in one layer are left for validation to refuse. Another ``path`` drops what was known
    of the training data of the model at the earlier one. Neither argument is changed.
    """
    if "kind" in upper and lower.get("kind") != upper["kind"]:
        lower = {}
    merged = {key: _copy(key, value) for key, value in lower.items() if not _is_replaced(key, lower, upper)}
    for key, value in upper.items():
        above, below = _copy(key, value), merged.get(key)
        merged[key] = merge(below, above) if isinstance(below, dict) and isinstance(above, dict) else above
    return merged


def _is_replaced(key: str, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> bool:
    if key == "known_training_data":
        return bool(upper.get("path", lower.get("path")) != lower.get("path"))
    other = ALTERNATIVES.get(key)
    return other is not None and key not in upper and upper.get(other) is not None


def _copy(key: str, value: Any) -> Any:
    """The value, as a mapping with its kind where only the kind was given, sharing nothing with the original."""
    if key in FIELDS_WITH_KINDS and isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping):
        return {inner: _copy(inner, item) for inner, item in value.items()}
    return list(value) if isinstance(value, list | tuple) else value
