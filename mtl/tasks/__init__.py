"""Tasks by name."""

from mtl.tasks.registry import expand, get, names, register_task, split_roles, suite_names

__all__ = ["expand", "get", "names", "register_task", "split_roles", "suite_names"]
