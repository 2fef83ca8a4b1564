"""Tasks of the user's own in a list of tasks: a task file is replaced by what it says, so that a config stays whole.

A run's ``config.yaml`` therefore holds the definitions themselves: a task file that is changed or deleted later changes
neither a resume nor an evaluation of that run.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mtl.config.documents import read_yaml

ORIGIN = "defined_in"
"""The key that a definition is given: the absolute path of its file; paths in it are relative to that file's folder."""


def is_task_file(name: str) -> bool:
    """Whether an entry in a list of tasks is the path of a task file."""
    return name.endswith((".yaml", ".yml"))


def anchored(document: Mapping[str, Any], origin: Path) -> dict[str, Any]:
    """The document with the task files in its ``tasks`` as absolute paths, and definitions with their origin.

    ``origin`` is the file that the document was read from; paths are relative to its folder.
    """

    def anchor(entry: Any) -> Any:
        if isinstance(entry, str) and is_task_file(entry):
            return str((origin.parent / Path(entry).expanduser()).absolute())
        return {ORIGIN: str(origin.absolute()), **entry} if isinstance(entry, dict) else entry

    return _with_entries(document, anchor)


def with_definitions(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what each task file in its ``tasks`` says in the file's place.

    Raises ConfigError for a file that cannot be read. What else is wrong with an entry is left to validation.
    """

    def read(entry: Any) -> Any:
        return read_definition(Path(entry)) if isinstance(entry, str) and is_task_file(entry) else entry

    return _with_entries(document, read)


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


def _with_entries(document: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    entries = document.get("tasks")
    return {**document, "tasks": [change(entry) for entry in entries]} if isinstance(entries, list) else dict(document)
