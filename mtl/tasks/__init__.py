"""Tasks by name."""

from mtl.tasks.registry import expand, get, is_registered_here, names, register_task, split_roles, suite_names

__all__ = ["expand", "get", "is_registered_here", "names", "register_task", "split_roles", "suite_names"]
