"""Every known task by name, and what a list of names, suites and subtractions in a configuration means."""

import difflib
from collections.abc import Sequence

from mtl.errors import ConfigError
from mtl.tasks import glue, mini
from mtl.tasks.spec import TaskSpec

_TASKS: dict[str, TaskSpec] = {spec.name: spec for spec in (*mini.SPECS, *glue.SPECS, *glue.DIAGNOSTICS)}


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


def names() -> tuple[str, ...]:
    """All known task names in the order they were registered."""
    return tuple(_TASKS)


def suite_names() -> tuple[str, ...]:
    """All suites that have a task, in the order of their first task."""
    return tuple(dict.fromkeys(spec.suite for spec in _TASKS.values()))


def expand(patterns: Sequence[str]) -> tuple[str, ...]:
    """The task names that ``patterns`` select, in order and without duplicates.

    A pattern is a task (``glue/rte``), a suite (``glue``: all its tasks that can be trained), or either with a leading
    ``-``, which takes away what earlier patterns selected. ConfigError for an unknown name and for taking away what is
    not there.
    """
    selected: dict[str, None] = {}
    for pattern in patterns:
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
