"""What is committed works on any machine and holds no unfinished business."""

import re

import pytest
from package_sources import REPOSITORY

FOLDERS = ("mtl", "tests", "configs", "experiments", "results", "scripts", ".ci")
TEXT_SUFFIXES = {
    "", ".py", ".sh", ".md", ".yaml", ".yml", ".toml", ".cfg", ".txt", ".json", ".jsonl", ".csv", ".tex", ".html"
}  # fmt: skip
# Written in pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.~/$}>-])/(?:work|root|home/\w+|Users/\w+)" + r"/")
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME"]) + r")\b")


def findings(text: str) -> list[str]:
    """Each machine path and each mark of unfinished work, with its line number."""
    return [
        f"line {number}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line) or UNFINISHED.search(line)
    ]


def test_no_machine_paths_and_nothing_unfinished() -> None:
    paths = [path for path in REPOSITORY.glob("*") if path.is_file()]
    for folder in FOLDERS:
        paths += [path for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    texts = [path for path in paths if path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts]
    assert len(texts) > 20
    found = [
        f"{path.relative_to(REPOSITORY)}, {line}"
        for path in texts
        for line in findings(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line", ["open('/wo" + "rk/data')", "see /ro" + "ot/x", "/home" + "/ann/run", "# TO" + "DO: x"]
)
def test_each_kind_is_seen(line: str) -> None:
    assert findings(line) == [f"line 1: {line}"]


@pytest.mark.parametrize("line", ["https://example.org/work/paper", "runs/work/a", "~/work/data", "$HOME/work/x"])
def test_other_paths_pass(line: str) -> None:
    assert findings(line) == []
