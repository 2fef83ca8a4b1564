"""Atomic files: new content or old content, never a mixture, and no leftovers."""

import os
import stat
from pathlib import Path

import pytest

from mtl import atomic


def test_text_is_written_in_utf8_with_its_own_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    atomic.write_text_atomically(path, "é\r\n語\n")
    assert path.read_bytes() == "é\r\n語\n".encode()


def test_content_is_replaced_and_no_temporary_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    atomic.write_bytes_atomically(path, b"old and longer")
    atomic.write_bytes_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_leaves_the_old_content_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space"):
        atomic.write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_the_content_is_synced_before_the_rename_and_the_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def recording_fsync(descriptor: int) -> None:
        calls.append("sync directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        fsync(descriptor)

    def recording_replace(source: Path, target: Path) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "replace", recording_replace)
    atomic.write_text_atomically(tmp_path / "a.txt", "new")
    assert calls == ["sync file", "rename", "sync directory"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        atomic.write_text_atomically(tmp_path / "a.txt", "")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
