"""Tasks by name."""

from mtl.tasks.registry import expand, get, names, register_task, suite_names

__all__ = ["expand", "get", "names", "register_task", "suite_names"]
