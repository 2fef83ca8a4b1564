"""Validation errors in words: which key, what is wrong with it, and what may have been meant."""

import difflib
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mtl.config.kinds import OneOf
from mtl.config.run import RunConfig, StageSettings
from mtl.config.settings import Settings, keys_of


def describe_problems(error: ValidationError, *, prefix: str = "", root: type[Settings] | None = None) -> list[str]:
    """One line a wrong key, ``path: what is wrong``, with the nearest known key or the known kinds where that helps.

    ``prefix`` is the block that the settings came from, put before every path. ``root`` is the type that was validated,
    where it is neither a run's settings nor a stage's.
    """
    root = root or (RunConfig if error.title == RunConfig.__name__ else StageSettings)
    lines: dict[str, list[str]] = {}
    for details in error.errors(include_url=False):
        path, owner = _locate(details["loc"], root)
        message = _explain(details, owner, path, prefix=prefix, root=root)
        messages = lines.setdefault(_join(prefix, *path) or "config", [])
        if message not in messages:
            messages.append(message)
    # A value of a union is refused once by each of its members.
    return [f"{path}: {', or '.join(messages)}" for path, messages in lines.items()]


def known_paths(settings: type[Settings], *parents: str) -> Iterator[str]:
    """Every key of the settings and of the groups in them, as dotted paths, all kinds included."""
    for name, field in keys_of(settings).items():
        yield ".".join((*parents, name))
        for group in _groups(field).values():
            yield from known_paths(group, *parents, name)


def _groups(field: FieldInfo) -> dict[str, type[Settings]]:
    """The settings types a field can hold: by kind where it has kinds, or one under the empty name."""
    for mark in field.metadata:
        if isinstance(mark, OneOf):
            return dict(mark.registry.items())
    annotation = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        annotation = members[0] if len(members) == 1 else None
    return {"": annotation} if isinstance(annotation, type) and issubclass(annotation, Settings) else {}


def _locate(location: tuple[int | str, ...], root: type[Settings]) -> tuple[list[str], type[Settings]]:
    """The path a user would write, and the settings type that holds its last key.

    A location of pydantic's also names the chosen kind and the members of unions, which are no keys.
    """
    path: list[str] = []
    owner, parts = root, list(location)
    while parts:
        name = str(parts.pop(0))
        path.append(name)
        field = keys_of(owner).get(name)
        if field is None:
            break
        groups = _groups(field)
        if not groups:
            return path + [str(part) for part in _without_union_member(parts, field.annotation)], owner
        if parts:
            group = groups[""] if "" in groups else groups.get(str(parts.pop(0)))
            if group is None:
                break
            if parts:
                owner = group
    return path, owner


def _without_union_member(parts: list[int | str], annotation: Any) -> list[int | str]:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is tuple and len(parts) > 1:
        return [parts[0], *_without_union_member(parts[1:], get_args(annotation)[0])]
    members = [member for member in get_args(annotation) if member is not type(None)]
    is_union = get_origin(annotation) in (Union, types.UnionType) and len(members) > 1
    return [part for part in parts[is_union:] if part != "[key]"]


def _explain(
    details: ErrorDetails, owner: type[Settings], path: list[str], *, prefix: str, root: type[Settings]
) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key{_suggestion(path, owner, prefix, root)}"
    if kind == "missing":
        return "is not set" + ("; e.g. tasks=[glue]" if path == ["tasks"] else "")
    if kind == "union_tag_invalid":
        return f"unknown kind {context['tag']}; known are {context['expected_tags']}"
    if kind == "union_tag_not_found":
        return "has no kind; set .kind"
    if kind == "value_error":
        return str(context["error"])
    if kind == "tuple_type" and isinstance(value, str):
        return f"must be a list; write [{value}]"
    message = details["msg"].replace("Input should be", "must be")
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        message = "must be a mapping of keys"
    return message if isinstance(value, Mapping) else f"{message}, not {'null' if value is None else value}"


def _suggestion(path: list[str], owner: type[Settings], prefix: str, root: type[Settings]) -> str:
    *parents, name = path
    everywhere = list(known_paths(root))
    if ".".join(path) in everywhere and "kind" in owner.model_fields:
        others = ", ".join(sorted(keys_of(owner).keys() - {"kind"})) or "no other keys"
        return f"; it is of another kind than {owner.model_fields['kind'].default}, which has {others}"
    near = difflib.get_close_matches(name, keys_of(owner), n=1)
    if near:
        return f"; did you mean {_join(prefix, *parents, near[0])}?"
    elsewhere = [known for known in everywhere if known.endswith(f".{name}") and known != ".".join(path)]
    if elsewhere:
        return f"; did you mean {' or '.join(_join(prefix, known) for known in dict.fromkeys(elsewhere))}?"
    return f"; known here are {', '.join(sorted(keys_of(owner)))}"


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)
