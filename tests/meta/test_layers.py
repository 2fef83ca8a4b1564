"""Imports point one way, and what must answer at once loads nothing heavy."""

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from package_sources import LAYERS, REPOSITORY, Module, all_modules, imports, parse

LIGHT = (
    "errors",
    "random_streams",
    "atomic",
    "rundir",
    "records",
    "config",
    "tasks",
    "metrics",
    "sampling",
    "costs",
    "cli",
)
HEAVY = ("torch", "transformers", "datasets", "pandas", "scipy")


def upward_imports(module: Module) -> list[str]:
    """What a module imports from layers after its own, as readable lines."""
    if not module.layer:
        # mtl/__init__.py offers names of all layers, lazily; test_light_imports watches the laziness.
        return []
    known = {layer: index for index, layer in enumerate(LAYERS)}
    found = []
    for name, line in imports(module):
        parts = name.split(".")
        if parts[0] != "mtl":
            continue
        target = parts[1] if len(parts) > 1 else "mtl itself"
        if target not in known or known[target] > known[module.layer]:
            found.append(f"{module.name}:{line} imports {name}")
    return found


def cycle(modules: tuple[Module, ...]) -> list[str]:
    """The modules of one import cycle, or nothing; an import inside a function counts as well."""
    names = {module.name for module in modules}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for module in modules:
        for name, _ in imports(module):
            target = name if name in names else name.rpartition(".")[0]
            if target in names and target != "mtl":
                sorter.add(module.name, target)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_module_belongs_to_a_layer() -> None:
    unknown = {module.layer for module in all_modules()} - {*LAYERS, ""}
    assert not unknown, f"add to LAYERS in package_sources.py, at their place: {sorted(unknown)}"


def test_imports_point_upwards_only() -> None:
    found = [line for module in all_modules() for line in upward_imports(module)]
    assert not found, "\n".join(found)


def test_no_import_cycles() -> None:
    found = cycle(tuple(module for module in all_modules() if module.layer))
    assert not found, " -> ".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "import mtl.training.loop",
        "from mtl.training import loop",
        "from mtl import training",
        "from ..training.loop import Loop",
        "import mtl",
        "def later():\n    from mtl.cli import main",
    ],
)
def test_an_import_of_a_later_layer_is_seen(text: str) -> None:
    assert upward_imports(parse("mtl.sampling.example", Path("example.py"), text))


def test_imports_of_earlier_layers_are_allowed() -> None:
    text = "import numpy\nfrom mtl.errors import ConfigError\nfrom .neighbour import thing\nfrom mtl import tasks"
    assert upward_imports(parse("mtl.sampling.example", Path("example.py"), text)) == []


def test_a_cycle_is_seen() -> None:
    first = parse("mtl.data.first", Path("first.py"), "from mtl.data.second import thing")
    second = parse("mtl.data.second", Path("second.py"), "def later():\n    from .first import other")
    assert set(cycle((first, second))) == {"mtl.data.first", "mtl.data.second"}
    assert cycle((first,)) == []


@pytest.mark.parametrize("layer", [layer for layer in LIGHT if any(layer == each.layer for each in all_modules())])
def test_light_imports(layer: str) -> None:
    names = [module.name for module in all_modules() if module.layer == layer]
    code = (
        f"import importlib, sys\n[importlib.import_module(name) for name in {names!r}]\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], f"importing mtl.{layer} loads {done.stdout.strip()}"
