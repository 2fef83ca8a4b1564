"""No file and no function grows into a giant."""

import ast
from pathlib import Path

from package_sources import PACKAGE, Module, all_modules, parse

LONGEST_FILE = 300
LONGEST_FUNCTION = 60
# In C; ruff sees to that of Python.
LONGEST_LINE = 120


def too_long(module: Module) -> list[str]:
    """The file, and each function of it, that has more lines than allowed; decorators are not counted."""
    found = []
    lines = len(module.text.splitlines())
    if lines > LONGEST_FILE:
        found.append(f"{module.path.name}: {lines} lines, {LONGEST_FILE} at most")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION:
                found.append(f"{module.name}.{node.name}: {length} lines, {LONGEST_FUNCTION} at most")
    return found


def test_files_and_functions_stay_small() -> None:
    found = [line for module in all_modules() for line in too_long(module)]
    assert not found, "\n".join(found)


def test_package_files_stay_tiny() -> None:
    found = [
        f"{module.name}: {len(module.text.splitlines())} lines"
        for module in all_modules()
        if module.is_package and module.path.parent != PACKAGE and len(module.text.splitlines()) > 60
    ]
    assert not found, "\n".join(found)


def test_giants_are_seen() -> None:
    function = "def giant():\n" + "    call()\n" * LONGEST_FUNCTION
    assert len(too_long(parse("mtl.example", Path("example.py"), function))) == 1
    assert len(too_long(parse("mtl.example", Path("example.py"), "a = 1\n" * (LONGEST_FILE + 1)))) == 1
    assert too_long(parse("mtl.example", Path("example.py"), "a = 1\n" * LONGEST_FILE)) == []


def test_files_in_c_are_short_and_no_line_is_long() -> None:
    files = [path for pattern in ("*.c", "*.h") for path in PACKAGE.rglob(pattern)]
    assert files
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= LONGEST_FILE, path.name
        assert [number for number, line in enumerate(lines, 1) if len(line) > LONGEST_LINE] == [], path.name
