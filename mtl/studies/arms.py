"""The arms of a study by name, each the settings that set it apart."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mtl import tasks as task_registry
from mtl.config.merge import merge
from mtl.config.overrides import is_lost
from mtl.config.task_files import is_task_file
from mtl.errors import ConfigError
from mtl.studies.spec import Document, StudySpec, as_document, check_name

_UNSUITABLE = re.compile(r"[^A-Za-z0-9._+-]+")


def arms_of(study: StudySpec, stages: Sequence[str]) -> dict[str, Document]:
    """Every arm in the order of the study; ``stages`` are those of its settings before the arms change anything.

    Raises ConfigError where two arms would be called the same, apart from upper and lower case, or where one's name
    cannot be a path.
    """
    if study.arms is not None:
        named = list(study.arms.items())
    elif study.grid is not None:
        named = _grid(study.grid)
    elif study.pairwise is not None:
        named = _pairwise(_tasks(study.pairwise, "pairwise"), stages)
    else:
        named = _leave_one_out(_tasks(study.leave_one_out or (), "leave_one_out"))
    seen: dict[str, str] = {}
    for name, _ in named:
        try:
            check_name(name)
        except ValueError as error:
            raise ConfigError(f"an arm would be called so, but {error}; write the arms out under arms:") from error
        if name.lower() in seen:
            raise ConfigError(
                f"two arms would be called {name} and {seen[name.lower()]}, which some file systems do not tell apart: "
                "take one out, or write the arms out under arms: with names of your own"
            )
        seen[name.lower()] = name
    return dict(named)


def _grid(grid: Mapping[str, Sequence[Any]]) -> list[tuple[str, Document]]:
    """All combinations, the last key changing fastest, called such as ``temperature=2,cap=null``."""
    keys = list(grid)
    shown = _short_keys(keys)
    arms = []
    for values in itertools.product(*grid.values()):
        document: Document = {}
        for key, value in zip(keys, values, strict=True):
            document = merge(document, as_document(key, value))
        _refuse_lost_keys(dict(zip(keys, values, strict=True)), document)
        arms.append(
            (",".join(f"{shown[key]}={_shown(value)}" for key, value in zip(keys, values, strict=True)), document)
        )
    return arms


def _refuse_lost_keys(combination: Mapping[str, Any], document: Document) -> None:
    lost = [key for key, value in combination.items() if is_lost(as_document(key, value), document)]
    if lost:
        raise ConfigError(
            f"the grid's {' and '.join(lost)} would have no effect, since another key of it sets something in their "
            "place; name a kind before its settings, take one out, or write the arms out under arms:"
        )


def _short_keys(keys: Sequence[str]) -> dict[str, str]:
    """Each key by its last part (of ``sampling.kind`` the one before), or whole where that would not tell it apart."""
    short = {key: _cleaned(key.removesuffix(".kind").rpartition(".")[2]) for key in keys}
    names = list(short.values())
    return {key: name if names.count(name) == 1 else _cleaned(key) for key, name in short.items()}


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return "+".join(_shown(item) for item in value)
    if isinstance(value, Mapping):
        return _cleaned(json.dumps(value, ensure_ascii=False))
    return _cleaned(str(value))


def _cleaned(text: str) -> str:
    return _UNSUITABLE.sub("-", text).strip("-") or "-"


def _tasks(patterns: Sequence[str], where: str) -> dict[str, str]:
    """The tasks that a generator is for, each with what it is called in the names of arms."""
    files = [pattern for pattern in patterns if is_task_file(pattern)]
    if files:
        raise ConfigError(f"{where} takes names of tasks, not task files such as {files[0]}: write the arms out")
    names = task_registry.expand(patterns)
    if len(names) < 2:
        raise ConfigError(f"{where} needs at least two tasks, and {list(patterns)} are {len(names)}")
    one_suite = len({name.split("/")[0] for name in names}) == 1
    return {name: name.split("/")[1] if one_suite else name.replace("/", ".") for name in names}


def _pairwise(tasks: Mapping[str, str], stages: Sequence[str]) -> list[tuple[str, Document]]:
    """Each task alone, in the stage ``single``; every pair in the study's other stages."""
    jointly = [stage for stage in stages if stage != "single"]
    if not jointly:
        raise ConfigError("pairwise trains pairs jointly, but stages has single alone; add joint to stages")
    singles = [(short, {"tasks": [name], "stages": ["single"]}) for name, short in tasks.items()]
    pairs = [
        (f"{tasks[first]}+{tasks[second]}", {"tasks": [first, second], "stages": list(jointly)})
        for first, second in itertools.combinations(tasks, 2)
    ]
    return [*singles, *pairs]


def _leave_one_out(tasks: Mapping[str, str]) -> list[tuple[str, Document]]:
    without: list[tuple[str, Document]] = [
        (f"without-{short}", {"tasks": [other for other in tasks if other != name]}) for name, short in tasks.items()
    ]
    return [("all", {"tasks": list(tasks)}), *without]
