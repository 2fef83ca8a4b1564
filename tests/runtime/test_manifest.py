"""A manifest notices every change to its directory."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtl.errors import DataError
from mtl.runtime.manifest import verify_manifest, write_manifest

CONTENT = bytes(range(64))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/weights.safetensors").write_bytes(CONTENT)
    (tmp_path / "config.json").write_text("{}")
    write_manifest(tmp_path)
    return tmp_path


def test_what_was_written_verifies_and_is_listed(directory: Path) -> None:
    verify_manifest(directory)
    listed = json.loads((directory / "manifest.json").read_text())["files"]
    assert {name: entry["bytes"] for name, entry in listed.items()} == {
        "config.json": 2,
        "deep/weights.safetensors": len(CONTENT),
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(position=st.integers(0, len(CONTENT) - 1), flip=st.integers(1, 255))
def test_any_changed_byte_is_noticed(directory: Path, position: int, flip: int) -> None:
    changed = bytearray(CONTENT)
    changed[position] ^= flip
    (directory / "deep/weights.safetensors").write_bytes(changed)
    with pytest.raises(DataError, match=r"deep/weights\.safetensors.*SHA-256"):
        verify_manifest(directory)


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"\0"])
def test_another_size_is_noticed(directory: Path, content: bytes) -> None:
    (directory / "deep/weights.safetensors").write_bytes(content)
    with pytest.raises(DataError, match=rf"weights\.safetensors has {len(content)} bytes, not 64"):
        verify_manifest(directory)


def test_a_missing_file_is_named(directory: Path) -> None:
    (directory / "config.json").unlink()
    with pytest.raises(DataError, match=r"config\.json is missing"):
        verify_manifest(directory)


def test_an_extra_file_is_named(directory: Path) -> None:
    (directory / "notes.txt").write_text("")
    with pytest.raises(DataError, match=r"notes\.txt is not in"):
        verify_manifest(directory)


@pytest.mark.parametrize("name", ["rng_state.pt", "a.PTH", "pytorch_model.bin", "deep/x.pkl", "model.py", "a.npy"])
def test_files_that_may_run_code_are_refused_with_or_without_a_manifest(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"")
    with pytest.raises(DataError, match="may run code"):
        verify_manifest(directory)
    with pytest.raises(DataError, match="may run code"):
        write_manifest(directory)


def test_a_link_is_refused(directory: Path) -> None:
    os.replace(directory / "config.json", directory.parent / "moved-config.json")
    (directory / "config.json").symlink_to(directory.parent / "moved-config.json")
    with pytest.raises(DataError, match="link"):
        verify_manifest(directory)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": {"config.json": {"bytes": 2}}}', '{"files": {}, "more": 1}', '{"files": null}']
)
def test_a_broken_manifest_is_an_error_of_the_data(directory: Path, text: str) -> None:
    (directory / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json is not a manifest"):
        verify_manifest(directory)


def test_a_missing_manifest_and_a_missing_directory_are_errors_of_the_data(directory: Path) -> None:
    (directory / "manifest.json").unlink()
    for path in (directory, directory / "absent"):
        with pytest.raises(DataError, match=r"manifest\.json is missing"):
            verify_manifest(path)
