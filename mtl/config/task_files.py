"""Tasks of the user's own in a list of tasks: a task file is replaced by what it says, so that a config stays whole.

A run's ``config.yaml`` therefore holds the definitions themselves: a task file that is changed or deleted later changes
neither a resume nor an evaluation of that run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mtl.config.documents import read_yaml

ORIGIN = "defined_in"
"""The key that a definition is given: the absolute path of its file; paths in it are relative to that file's folder."""


def is_task_file(name: str) -> bool:
    """Whether an entry in a list of tasks is the path of a task file."""
    return name.endswith((".yaml", ".yml"))


def with_definitions(document: Mapping[str, Any], origin: Path) -> dict[str, Any]:
    """The document with what each task file in its ``tasks`` says in its place, and the origin of each definition.

    ``origin`` is the file that the document was read from; paths are relative to its folder. Raises ConfigError for a
    task file that cannot be read. What else is wrong with an entry or a definition is left to validation.
    """
    entries = document.get("tasks")
    if not isinstance(entries, list):
        return dict(document)
    return {**document, "tasks": [_entry(entry, origin) for entry in entries]}


def read_definition(path: Path) -> dict[str, Any]:
    """The definition in a task file, with its origin."""
    absolute = path.expanduser().absolute()
    return {**read_yaml(absolute), ORIGIN: str(absolute)}


def identity_of_tasks(entries: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
    """The entries, definitions by name apart, without what cannot change a result.

    That is where they were defined: the files lie in the same folder, and their content has fingerprints.
    """
    names = [entry if isinstance(entry, str) else str(entry.get("name")) for entry in entries]
    defined = {
        name: {key: value for key, value in entry.items() if key != ORIGIN}
        for name, entry in zip(names, entries, strict=True)
        if not isinstance(entry, str)
    }
    return {"tasks": names, **({"definitions": defined} if defined else {})}


def _entry(entry: Any, origin: Path) -> Any:
    if isinstance(entry, str) and is_task_file(entry):
        return read_definition(origin.parent / Path(entry).expanduser())
    if isinstance(entry, dict):
        return {ORIGIN: str(origin.absolute()), **entry}
    return entry
