"""Kernels are compiled once, kept, and replaced by torch's operations, with a reason, wherever they cannot be had."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mtl.errors import ConfigError
from mtl.models.kernels import compiled
from mtl.models.kernels.compiled import choose_kernels, compiled_kernels

_TWO_AT_ONCE = """
import sys
from pathlib import Path
from mtl.models.kernels.compiled import choose_kernels
print(choose_kernels("compiled", Path(sys.argv[1])))
"""

# In a process of its own: other libraries bring threads of theirs, which say nothing of the kernels.
_MAPPED = """
import sys
from pathlib import Path
import torch
from mtl.models.kernels.compiled import choose_kernels
def openmp():
    files = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if len(line.split()) > 5}
    return sorted(name for name in files if "gomp" in name or "libomp" in name or "iomp" in name)
print(openmp())
choose_kernels("compiled", Path(sys.argv[1]))
print(openmp())
"""


def test_torch_alone_is_what_was_asked_for(tmp_path: Path) -> None:
    assert "as was asked for" in choose_kernels("torch", tmp_path / "kernels")
    assert compiled_kernels() is None
    assert not list(tmp_path.iterdir())


def test_compiling_happens_once(tmp_path: Path, compiled_library: ctypes.CDLL) -> None:
    del compiled_library  # Skips where there is no compiler.
    assert "compiled within" in choose_kernels("auto", tmp_path / "kernels")
    assert choose_kernels("auto", tmp_path / "kernels") == "compiled kernels"
    [kept] = (tmp_path / "kernels").iterdir()
    assert kept.suffix == ".so"
    assert compiled_kernels() is not None


def test_other_sources_flags_or_processors_get_kernels_of_their_own(
    tmp_path: Path, compiled_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled_library
    gcc = shutil.which("gcc")
    assert gcc is not None
    found = {compiled._fingerprint(gcc)}
    monkeypatch.setattr(compiled, "_FLAGS", (*compiled._FLAGS, "-g"))
    found.add(compiled._fingerprint(gcc))
    monkeypatch.setattr(compiled, "_processor_features", lambda: "flags: of another machine")
    found.add(compiled._fingerprint(gcc))
    sources = shutil.copytree(compiled._HERE, tmp_path / "kernels")
    (sources / "vectors.h").write_text((sources / "vectors.h").read_text() + "\n")
    monkeypatch.setattr(compiled, "_HERE", sources)
    found.add(compiled._fingerprint(gcc))
    assert len(found) == 4


@pytest.mark.parametrize("broken", ["no compiler", "a compiler that fails", "sources", "directory"])
def test_what_cannot_be_had_is_left_to_torch_or_refused(
    broken: str, tmp_path: Path, compiled_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled_library
    directory = tmp_path / "kept"
    if broken == "no compiler":
        monkeypatch.setenv("PATH", str(tmp_path))
        expected = "there is no gcc"
    elif broken == "a compiler that fails":
        fake = tmp_path / "gcc"
        fake.write_text("#!/bin/sh\nprintf 'error: not today, \\374\\n' >&2\nexit 1\n")
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        expected = "not today"
    elif broken == "sources":
        sources = shutil.copytree(compiled._HERE, tmp_path / "sources")
        (sources / "attention.c").write_text("int main(void) { return nothing; }\n")
        monkeypatch.setattr(compiled, "_HERE", sources)
        expected = "nothing"
    else:
        directory.write_text("a file in the way")
        expected = "cannot be written"
    said = choose_kernels("auto", directory)
    assert expected in said
    assert "torch's operations" in said
    assert compiled_kernels() is None
    with pytest.raises(ConfigError, match="set it to auto or torch"):
        choose_kernels("compiled", directory)


@pytest.mark.parametrize(("length", "filled"), [(1000, False), (20_000, True)], ids=["cut short", "zeros at its end"])
def test_a_damaged_file_is_compiled_anew(
    length: int, filled: bool, tmp_path: Path, compiled_library: ctypes.CDLL
) -> None:
    whole = Path(compiled_library._name).read_bytes()
    kept = tmp_path / Path(compiled_library._name).name
    kept.write_bytes(whole[:length] + bytes(len(whole) - length if filled else 0))
    assert "compiled within" in choose_kernels("compiled", tmp_path)
    assert kept.stat().st_size == len(whole)


def test_without_a_home_there_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MTL_CACHE_DIR")
    monkeypatch.setattr(Path, "home", refuse)
    if shutil.which("gcc"):
        assert "MTL_CACHE_DIR" in choose_kernels("auto")
    assert "as was asked for" in choose_kernels("torch")


def test_what_compiles_but_does_not_load_is_left_to_torch(
    tmp_path: Path, compiled_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled_library
    sources = shutil.copytree(compiled._HERE, tmp_path / "sources")
    with (sources / "attention.c").open("a") as file:
        file.write("void nowhere(void);\nvoid mtl_calls_it(void) { nowhere(); }\n")
    monkeypatch.setattr(compiled, "_HERE", sources)
    said = choose_kernels("auto", tmp_path / "kept")
    assert "cannot be loaded" in said
    assert "nowhere" in said


def test_two_processes_may_compile_at_once(tmp_path: Path, compiled_library: ctypes.CDLL) -> None:
    del compiled_library
    command = [sys.executable, "-c", _TWO_AT_ONCE, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all("compiled" in each for each in said)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process's memory")
def test_no_second_set_of_threads_comes_with_them(compiled_library: ctypes.CDLL) -> None:
    command = [sys.executable, "-c", _MAPPED, str(Path(compiled_library._name).parent)]
    before, after = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "omp" in before
    assert after == before


def test_every_file_in_c_counts() -> None:
    """One that is left out would change, and kernels compiled before would go on being used."""
    there = {path.name for path in Path(compiled.__file__).parent.iterdir() if path.suffix in (".c", ".h")}
    assert there == {*compiled._SOURCES, *compiled._HEADERS}
