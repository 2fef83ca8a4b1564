"""What the verbs share: telling configs from assignments, and loading plug-ins."""

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtl.errors import ConfigError

_MODULE = re.compile(r"\w+(\.\w+)*")
# The first key is plain, so that a path such as runs/a=b.yaml is taken for the file it is.
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\.[^=]*)?=")


@dataclass(frozen=True)
class Verb:
    """A subcommand: ``declare`` adds its arguments to a parser, ``act`` carries it out and returns the exit code."""

    name: str
    summary: str
    example: str
    declare: Callable[[argparse.ArgumentParser], None]
    act: Callable[[argparse.Namespace], int]


def split_settings(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The configs, and the assignments ``key=value``, each in the order given."""
    overrides = [word for word in words if _ASSIGNMENT.match(word)]
    return [word for word in words if not _ASSIGNMENT.match(word)], overrides


def declare_settings(parser: argparse.ArgumentParser) -> None:
    """Arguments of every verb that takes a configuration."""
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="CONFIG | key=value",
        help="config files or names of shipped recipes, merged left to right; then assignments, which come last",
    )
    declare_plugins(parser)


def declare_plugins(parser: argparse.ArgumentParser) -> None:
    """The argument that names modules for :func:`load_plugins`."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="a Python module to import first, which registers tasks, samplers or weightings; may be repeated",
    )


def load_plugins(modules: Sequence[str]) -> None:
    """Import each module, also from the working directory; ConfigError where there is none of that name."""
    if modules and os.getcwd() not in sys.path:
        # Last, so that nothing that happens to lie here takes the place of an installed module.
        sys.path.append(os.getcwd())
    for module in modules:
        if not _MODULE.fullmatch(module):
            raise ConfigError(f"--plugin {module}: is no name of a module; write it as in an import statement")
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
                raise
            raise ConfigError(
                f"--plugin {module}: there is no such module, neither installed nor in {os.getcwd()}; "
                "name it as in an import statement, without .py"
            ) from error
