"""How a later layer of settings changes an earlier one."""

from collections.abc import Mapping
from typing import Any

from mtl.config.encoder import EncoderSettings, HeadSettings
from mtl.config.sampling import SamplingSettings
from mtl.config.settings import Settings
from mtl.config.training import ALTERNATIVES
from mtl.config.weighting import WeightingSettings

# Fields whose settings come in kinds, for which `sampling: uniform` is short for `sampling: {kind: uniform}`, with the
# type whose fields every kind has.
FIELDS_WITH_KINDS: dict[str, type[Settings]] = {
    "sampling": SamplingSettings,
    "schedule": Settings,
    "weighting": WeightingSettings,
    "encoder": EncoderSettings,
    "head": HeadSettings,
}


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """A new document with everything that ``upper`` sets, and of ``lower`` what ``upper`` leaves alone.

    Mappings merge key by key; lists, text and None replace. Where ``upper`` names another ``kind`` than ``lower``, only
    what every kind has stays of ``lower`` (whose sizes a sampler counts, an encoder's dropout), since its other keys
    belong to their kind. What ``lower`` sets without naming a kind stays, for validation to refuse where it does not
    fit. Setting one of two ALTERNATIVES drops the other from ``lower``; both set in one layer are left for validation
    to refuse. Another ``path`` or kind drops what was known of the training data of the model at the earlier one.
    Neither argument is changed.
    """
    merged = {key: _copy(key, value) for key, value in lower.items() if not _is_replaced(key, lower, upper)}
    for key, value in upper.items():
        above, below = _copy(key, value), merged.get(key)
        if isinstance(below, dict) and isinstance(above, dict):
            above = merge(_of_any_kind(key, below) if _is_another_kind(below, above) else below, above)
        merged[key] = above
    return merged


def _is_another_kind(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> bool:
    return "kind" in lower and "kind" in upper and lower["kind"] != upper["kind"]


def _of_any_kind(field: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    shared = FIELDS_WITH_KINDS[field].model_fields if field in FIELDS_WITH_KINDS else {}
    # What a model is known to have been trained on is said of the one that was named with it.
    return {key: value for key, value in settings.items() if key in shared and key != "known_training_data"}


def _is_replaced(key: str, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> bool:
    if key == "known_training_data":
        return "path" in lower and "path" in upper and bool(upper["path"] != lower["path"])
    other = ALTERNATIVES.get(key)
    return other is not None and key not in upper and upper.get(other) is not None


def _copy(key: str, value: Any) -> Any:
    """The value, as a mapping with its kind where only the kind was given, sharing nothing with the original."""
    if key in FIELDS_WITH_KINDS and isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping):
        return {inner: _copy(inner, item) for inner, item in value.items()}
    return list(value) if isinstance(value, list | tuple) else value
