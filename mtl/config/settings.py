"""The base of every settings type, and the marks that say which fields can change a result."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo


class Settings(BaseModel):
    """A frozen, validated group of settings; an unknown key is an error, and defaults are validated too."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, serialize_by_alias=True
    )


def execution(default: Any, **constraints: Any) -> Any:
    """A field that says how a run is carried out and cannot change its result: left out of the identity hashes."""
    return Field(default, json_schema_extra={"execution": True}, **constraints)


def keys_of(settings: type[Settings]) -> dict[str, FieldInfo]:
    """The fields by the key that a config calls them: another than the attribute where that is a word of Python's."""
    return {field.alias or name: field for name, field in settings.model_fields.items()}


def identity_document(settings: Settings) -> dict[str, Any]:
    """The settings as plain JSON data without their execution fields, nested groups included."""
    document = {}
    for name, field in type(settings).model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, Mapping) and extra.get("execution"):
            continue
        value = getattr(settings, name)
        document[name] = identity_document(value) if isinstance(value, Settings) else _plain(value)
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)
