"""A run that is refused: what is typed, what lies there, and what has to be said and left."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_runs import settings

from mtl.cli import main

Prepare = Callable[[Path], None]
# Longer than any file system allows a name to be.
LONG = "x" * 5000


def a_file(name: str, content: str | bytes) -> Prepare:
    def write(directory: Path) -> None:
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def nothing(directory: Path) -> None:
    del directory


@dataclass(frozen=True)
class Case:
    """What is typed after ``mtl run`` (on top of a tiny run), what lies there, and what has to be said."""

    code: int
    told: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    prepare: Prepare = nothing


def listing(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def assert_said(error: str, verb: str, told: tuple[str, ...]) -> None:
    """One message after what was logged, short, that names the place; and no sign of an error inside the program."""
    assert error.count(f"mtl {verb}: ") == 1, error
    message = error[error.index(f"mtl {verb}: ") :]
    assert len(message.strip().splitlines()) <= 3, message
    assert len(message) < 1500, message
    assert "Traceback" not in error
    for part in told:
        assert part in message, message


def assert_refused(case: Case, tmp_path: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The run of the case ends with its code and message, and leaves the directory as it was."""
    directory, cache = tmp_path / "here", tmp_path / "cache"
    directory.mkdir()
    case.prepare(directory)
    patch.chdir(directory)
    patch.setenv("MTL_CACHE_DIR", str(cache))
    before = listing(directory)
    argv = [*settings(Path("run")), *case.overrides]
    assert main(["run", *argv]) == case.code, capsys.readouterr().err
    assert_said(capsys.readouterr().err, "run", case.told)
    assert listing(directory) == before
    # What was tokenised before the fault may stay, whole; of the rest nothing but locks.
    stores = [path for path in cache.glob("tokens/*") if path.suffix != ".lock"]
    assert all((path / "manifest.json").is_file() for path in stores)
