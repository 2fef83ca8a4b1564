"""Every known task by name, and what a list of names, suites and subtractions in a configuration means."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mtl.config.task_files import is_task_file, read_definition
from mtl.errors import ConfigError
from mtl.tasks import glue, mini
from mtl.tasks.custom import define_task
from mtl.tasks.spec import TaskSpec

_SHIPPED = {spec.name: spec for spec in (*mini.SPECS, *glue.SPECS, *glue.DIAGNOSTICS)}
_TASKS: dict[str, TaskSpec] = dict(_SHIPPED)


def get(name: str) -> TaskSpec:
    """The task called ``name``; ConfigError naming the nearest known tasks where there is none."""
    if name not in _TASKS:
        raise ConfigError(_unknown("task", name, names()))
    return _TASKS[name]


def register_task(spec: TaskSpec) -> None:
    """Make ``spec`` known under its name; ConfigError where that name is taken, since results would be ambiguous."""
    if spec.name in _TASKS:
        raise ConfigError(f"task {spec.name!r} is registered already; give yours another name")
    _TASKS[spec.name] = spec


def is_registered_here(name: str) -> bool:
    """Whether the task is known to this process alone, by :func:`register_task`: it is neither shipped nor a file's."""
    return name not in _SHIPPED and get(name).files_root is None


def names() -> tuple[str, ...]:
    """All known task names in the order they were registered."""
    return tuple(_TASKS)


def suite_names() -> tuple[str, ...]:
    """All suites that have a task, in the order of their first task."""
    return tuple(dict.fromkeys(spec.suite for spec in _TASKS.values()))


def expand(patterns: Sequence[str | Mapping[str, Any]]) -> tuple[str, ...]:
    """The task names that ``patterns`` select, in order and without duplicates.

    A pattern is a task (``glue/rte``), a suite (``glue``: all its tasks that can be trained), or either with a leading
    ``-``, which takes away what earlier patterns selected. A mapping, or the path of a task file, defines a task of the
    user's own, which is known by its name from here on, also to later patterns. ConfigError for an unknown name, for
    taking away what is not there, and for a definition that is not valid or takes a name that others have.
    """
    selected: dict[str, None] = {}
    for place, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or is_task_file(pattern):
            definition = read_definition(Path(pattern)) if isinstance(pattern, str) else pattern
            selected[_define(definition, patterns[:place])] = None
            continue
        matched = _match(pattern.removeprefix("-"))
        if not pattern.startswith("-"):
            selected.update(dict.fromkeys(matched))
            continue
        present = [name for name in matched if name in selected]
        if not present:
            raise ConfigError(
                f"tasks: {pattern!r} takes away what no earlier entry selects (selected so far: "
                f"{', '.join(selected) or 'nothing'}); put it after the suite it belongs to, or leave it out"
            )
        for name in present:
            del selected[name]
    return tuple(selected)


def split_roles(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the tasks to train, and of those that are only evaluated, each in the order given."""
    evaluated = tuple(name for name in names if get(name).evaluate_only)
    return tuple(name for name in names if name not in evaluated), evaluated


def _define(definition: Mapping[str, Any], earlier: Sequence[str | Mapping[str, Any]]) -> str:
    """Make the task known; a later list of tasks may define it anew, since a process can see several configs."""
    spec = define_task(definition)
    known = _TASKS.get(spec.name)
    suites = {shipped.suite for shipped in _SHIPPED.values()}
    where = definition.get("defined_in", "a definition")
    if spec.suite in suites:
        raise ConfigError(
            f"{where}: the name {spec.name!r} is in the shipped suite {spec.suite!r}, whose scores it would change; "
            f"choose another, for example mine/{spec.name.split('/')[1]}"
        )
    twice = any(not isinstance(other, str) and other.get("name") == spec.name for other in earlier)
    if twice or (known is not None and known.files_root is None):
        raise ConfigError(f"{where}: another task is called {spec.name!r} already; give this one another name")
    _TASKS[spec.name] = spec
    return spec.name


def _match(name: str) -> tuple[str, ...]:
    if "/" in name:
        return (get(name).name,)
    matched = tuple(spec.name for spec in _TASKS.values() if spec.suite == name and not spec.evaluate_only)
    if not matched:
        raise ConfigError(_unknown("suite", name, suite_names() + names()))
    return matched


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    nearest = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"known are {', '.join(known)}"
    return f"unknown {what} {name!r}; {hint}"
