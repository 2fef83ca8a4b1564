"""What the tests of the code base itself read: every module of the package, parsed, and the imports it makes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "mtl"

# Each may import from itself and from those before it, never from those after it.
LAYERS = (
    "errors",
    "random_streams",
    "atomic",
    "rundir",
    "records",
    "config",
    "tasks",
    "metrics",
    "sampling",
    "data",
    "runtime",
    "costs",
    "models",
    "gradients",
    "weighting",
    "evaluation",
    "training",
    "stages",
    "bench",
    "studies",
    "registration",
    "api",
    "cli",
    "__main__",
)


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def layer(self) -> str:
        """The part of the name after `mtl.`; empty for the package itself."""
        return self.name.split(".")[1] if "." in self.name else ""


def parse(name: str, path: Path, text: str) -> Module:
    return Module(name, path, text, ast.parse(text, filename=str(path)))


@cache
def all_modules() -> tuple[Module, ...]:
    """Every module under mtl/, sorted by name."""
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(parse(name, path, path.read_text(encoding="utf-8")))
    return tuple(modules)


def imported_names(module: Module, node: ast.AST) -> list[str]:
    """The absolute dotted names an import statement asks for; `from a import b` gives `a.b`. Empty for other nodes."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parents = module.name.split(".")
        kept = parents[: len(parents) - node.level + module.is_package]
        base = ".".join([*kept, base] if base else kept)
    return [base if alias.name == "*" else f"{base}.{alias.name}" for alias in node.names]


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """Every import anywhere in the module, in functions too: (absolute dotted name, line)."""
    for node in ast.walk(module.tree):
        for name in imported_names(module, node):
            yield name, node.lineno  # type: ignore[attr-defined]


def imports_at_load(module: Module) -> Iterator[tuple[str, int]]:
    """The imports that run when the module is loaded: those outside functions and outside `if TYPE_CHECKING`."""
    waiting: list[ast.AST] = [module.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting.extend(node.orelse)
            continue
        for name in imported_names(module, node):
            yield name, node.lineno  # type: ignore[attr-defined]
        waiting.extend(ast.iter_child_nodes(node))
