"""No fault while a checkpoint is saved costs an earlier one: a full disk, a crash at any write, a kill."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from safetensors import SafetensorError
from small_checkpoints import names_in, save_small, weight_in

from mtl.errors import MtlError
from mtl.runtime import checkpoint_files as checkpoints


def test_too_little_space_is_known_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_small(tmp_path / "last")
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(MtlError, match="disk is full"):
        save_small(tmp_path / "last", 2.0)
    assert weight_in(tmp_path / "last") == 1.0


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_disk_that_fills_up_while_saving_costs_nothing(tmp_path: Path, error: Exception) -> None:
    def fail(_: Path) -> NoReturn:
        raise error

    save_small(tmp_path / "last")
    with pytest.raises(MtlError, match="disk is full"):
        save_small(tmp_path / "last", 2.0, files=fail)
    assert weight_in(tmp_path / "last") == 1.0
    assert names_in(tmp_path) == ["last"]


def test_other_errors_pass_through(tmp_path: Path) -> None:
    def fail(_: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "not yours")

    with pytest.raises(PermissionError):
        save_small(tmp_path / "last", files=fail)
    assert names_in(tmp_path) == []


def test_a_rename_that_fails_puts_the_old_checkpoint_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_small(tmp_path / "last")
    rename = os.rename

    def fail_for_the_new_one(source: Path, target: Path) -> None:
        if source.name.endswith(".new"):
            raise OSError(errno.EIO, "input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="input/output"):
        save_small(tmp_path / "last", 2.0)
    assert weight_in(tmp_path / "last") == 1.0
    assert names_in(tmp_path) == ["last"]


class Crash(BaseException):
    """Stands for the moment at which the process dies: nothing after it changes the disk."""


class CrashAt:
    """Lets the first ``count`` calls that change the disk happen, and crashes at the next one and ever after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.left = count
        calls: list[tuple[object, str]] = [
            (os, "fsync"), (os, "rename"), (os, "replace"), (shutil, "rmtree"), (Path, "mkdir"), (Path, "write_text"),
            (Path, "unlink"), (checkpoints, "save_file"),
        ]  # fmt: skip
        for owner, name in calls:
            monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

    def _counting(self, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            self.left -= 1
            if self.left < 0:
                raise Crash
            return function(*arguments, **options)

        return call


def test_a_crash_at_any_write_leaves_the_old_or_the_new_checkpoint(tmp_path: Path) -> None:
    crashed, count = True, 0
    while crashed:
        parent = tmp_path / str(count)
        save_small(parent / "last", 1.0)
        save_small(parent / "step-00000001", 1.0)
        with pytest.MonkeyPatch.context() as patch:
            CrashAt(patch, count)
            crashed = False
            try:
                save_small(parent / "last", 2.0)
                save_small(parent / "step-00000002", 2.0)
            except Crash:
                crashed = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoints, "is_running", lambda pid, start: False)
            checkpoints.remove_leftovers(parent)
        assert weight_in(parent / "last") in (1.0, 2.0)
        newest = checkpoints.newest_valid_checkpoint(parent)
        assert newest is not None
        assert weight_in(newest) == float(newest.name[-1])
        assert not [name for name in names_in(parent) if name.startswith(".")]
        count += 1
    assert count > 25


_SAVE_SLOWLY = """
import sys, time, torch
from pathlib import Path
from mtl.runtime.checkpoint_files import save_checkpoint
def wait(directory):
    print("writing", flush=True)
    time.sleep(60)
save_checkpoint(Path(sys.argv[1]), tensors={"model": {"w": torch.ones(3)}}, documents={"state": {}}, files=wait)
"""


def test_kill_while_saving_leaves_the_older_checkpoint_and_the_leftovers_go(tmp_path: Path) -> None:
    save_small(tmp_path / "step-00000001")
    command = [sys.executable, "-c", _SAVE_SLOWLY, str(tmp_path / "step-00000002")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        checkpoints.remove_leftovers(tmp_path)
        assert len(names_in(tmp_path)) == 2, "the checkpoint of a living process was removed"
        child.send_signal(signal.SIGKILL)
    assert checkpoints.newest_valid_checkpoint(tmp_path) == tmp_path / "step-00000001"
    checkpoints.remove_leftovers(tmp_path)
    assert names_in(tmp_path) == ["step-00000001"]


def test_leftovers_are_only_what_savers_leave(tmp_path: Path) -> None:
    for name in (".git", ".last.new", "last", ".last.x.0.new", "best.999999999.0.new"):
        (tmp_path / name).mkdir()
    before = names_in(tmp_path)
    checkpoints.remove_leftovers(tmp_path)
    checkpoints.remove_leftovers(tmp_path / "absent")
    assert names_in(tmp_path) == before
