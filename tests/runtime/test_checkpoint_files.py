"""Checkpoints: what was saved comes back, damage is found, and no fault costs an earlier checkpoint."""

import errno
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from pydantic import JsonValue
from safetensors import SafetensorError

from mtl.errors import DataError, MtlError, NonFiniteError
from mtl.runtime import checkpoint_files as checkpoints

STATE: dict[str, JsonValue] = {"step": 7, "losses": [0.5, None], "nested": {"b": "é", "a": True}}


def _save(directory: Path, value: float = 1.0, files: Callable[[Path], None] | None = None) -> None:
    tensors = {
        "model": {"encoder.weight": torch.full((2, 3), value), "ids": torch.arange(3)},
        "optimizer": {"moment": torch.tensor([0.25], dtype=torch.bfloat16)},
    }
    checkpoints.save_checkpoint(directory, tensors=tensors, documents={"state": STATE}, files=files)


def _value(directory: Path) -> float:
    checkpoints.verify_checkpoint(directory)
    return checkpoints.load_tensors(directory, "model")["encoder.weight"][0, 0].item()


def _names(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


def test_content_comes_back_with_types_shapes_and_added_files(tmp_path: Path) -> None:
    def add(directory: Path) -> None:
        (directory / "tokenizer").mkdir()
        (directory / "tokenizer/vocab.txt").write_text("a\n")

    _save(tmp_path / "deep/last", files=add)
    directory = tmp_path / "deep/last"
    checkpoints.verify_checkpoint(directory)
    model = checkpoints.load_tensors(directory, "model")
    assert torch.equal(model["encoder.weight"], torch.ones(2, 3))
    assert torch.equal(model["ids"], torch.arange(3))
    assert checkpoints.load_tensors(directory, "optimizer")["moment"].dtype == torch.bfloat16
    assert checkpoints.load_document(directory, "state") == STATE
    assert (directory / "tokenizer/vocab.txt").read_text() == "a\n"
    assert _names(directory.parent) == ["last"]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    _save(tmp_path / "a")
    _save(tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_tensors_that_share_memory_or_are_not_contiguous_are_saved_in_full(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    model = {
        "tied": base,
        "also": base,
        "turned": base.T,
        "part": base[1:],
        "none": torch.zeros(0),
        "no": torch.zeros(0),
    }
    checkpoints.save_checkpoint(tmp_path / "last", tensors={"model": model}, documents={})
    loaded = checkpoints.load_tensors(tmp_path / "last", "model")
    assert loaded.keys() == model.keys()
    assert all(torch.equal(loaded[name], model[name]) for name in model)


def test_files_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        _save(tmp_path / "last")
    finally:
        os.umask(old)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "last").iterdir()} == {0o640}


def test_a_checkpoint_is_replaced_whole(tmp_path: Path) -> None:
    _save(tmp_path / "last", 1.0, files=lambda directory: (directory / "old.txt").touch())
    _save(tmp_path / "last", 2.0)
    assert _value(tmp_path / "last") == 2.0
    assert not (tmp_path / "last/old.txt").exists()
    assert _names(tmp_path) == ["last"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path, bad: float) -> None:
    _save(tmp_path / "last")
    with pytest.raises(NonFiniteError, match=r"encoder\.weight"):
        _save(tmp_path / "last", bad)
    assert _value(tmp_path / "last") == 1.0


def test_a_document_that_is_not_finite_is_refused_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=r"state\.best\.1\.score"):
        checkpoints.save_checkpoint(
            tmp_path / "last", tensors={}, documents={"state": {"best": [1.0, {"score": float("-inf")}]}}
        )
    assert _names(tmp_path) == []


def test_too_little_space_is_known_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path / "last")
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(MtlError, match="disk is full"):
        _save(tmp_path / "last", 2.0)
    assert _value(tmp_path / "last") == 1.0


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

    _save(tmp_path / "last")
    with pytest.raises(MtlError, match="disk is full"):
        _save(tmp_path / "last", 2.0, files=fail)
    assert _value(tmp_path / "last") == 1.0
    assert _names(tmp_path) == ["last"]


def test_other_errors_pass_through(tmp_path: Path) -> None:
    def fail(_: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "not yours")

    with pytest.raises(PermissionError):
        _save(tmp_path / "last", files=fail)
    assert _names(tmp_path) == []


def test_a_rename_that_fails_puts_the_old_checkpoint_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path / "last")
    rename = os.rename

    def fail_for_the_new_one(source: Path, target: Path) -> None:
        if source.name.endswith(".new"):
            raise OSError(errno.EIO, "input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="input/output"):
        _save(tmp_path / "last", 2.0)
    assert _value(tmp_path / "last") == 1.0
    assert _names(tmp_path) == ["last"]


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
        _save(parent / "last", 1.0)
        _save(parent / "step-00000001", 1.0)
        with pytest.MonkeyPatch.context() as patch:
            CrashAt(patch, count)
            crashed = False
            try:
                _save(parent / "last", 2.0)
                _save(parent / "step-00000002", 2.0)
            except Crash:
                crashed = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoints, "is_running", lambda pid, start: False)
            checkpoints.remove_leftovers(parent)
        assert _value(parent / "last") in (1.0, 2.0)
        newest = checkpoints.newest_valid_checkpoint(parent)
        assert newest is not None
        assert _value(newest) == float(newest.name[-1])
        assert not [name for name in _names(parent) if name.startswith(".")]
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
    _save(tmp_path / "step-00000001")
    command = [sys.executable, "-c", _SAVE_SLOWLY, str(tmp_path / "step-00000002")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        checkpoints.remove_leftovers(tmp_path)
        assert len(_names(tmp_path)) == 2, "the checkpoint of a living process was removed"
        child.send_signal(signal.SIGKILL)
    assert checkpoints.newest_valid_checkpoint(tmp_path) == tmp_path / "step-00000001"
    checkpoints.remove_leftovers(tmp_path)
    assert _names(tmp_path) == ["step-00000001"]


def test_leftovers_are_only_what_savers_leave(tmp_path: Path) -> None:
    for name in (".git", ".last.new", "last", ".last.x.0.new", "best.999999999.0.new"):
        (tmp_path / name).mkdir()
    before = _names(tmp_path)
    checkpoints.remove_leftovers(tmp_path)
    checkpoints.remove_leftovers(tmp_path / "absent")
    assert _names(tmp_path) == before


def _truncate(directory: Path) -> None:
    os.truncate(directory / "model.safetensors", 10)


def _flip(directory: Path) -> None:
    content = bytearray((directory / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (directory / "model.safetensors").write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_truncate, "has 10 bytes"),
        (_flip, "SHA-256"),
        (lambda directory: (directory / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda directory: (directory / "state.json").unlink(), "state.json is missing"),
        (lambda directory: (directory / "rng_state.pt").touch(), "rng_state.pt is refused"),
    ],
)
def test_the_newest_valid_checkpoint_is_found_behind_damaged_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None], reason: str
) -> None:
    for step in (900, 1000, 100_000_000):
        _save(checkpoints.step_directory(tmp_path, step))
    damage(tmp_path / "step-100000000")
    with caplog.at_level(logging.WARNING, logger="mtl"):
        assert checkpoints.newest_valid_checkpoint(tmp_path) == tmp_path / "step-00001000"
    assert "step-100000000" in caplog.text
    assert reason in caplog.text


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    (tmp_path / "step-1").mkdir()
    _save(tmp_path / "last")
    assert checkpoints.newest_valid_checkpoint(tmp_path) is None
    assert checkpoints.newest_valid_checkpoint(tmp_path / "absent") is None


def test_the_oldest_go_and_named_ones_stay(tmp_path: Path) -> None:
    for name in ("step-00000001", "step-00000002", "step-00000010", "best", "last"):
        _save(tmp_path / name)
    checkpoints.keep_newest(tmp_path, 2)
    assert _names(tmp_path) == ["best", "last", "step-00000002", "step-00000010"]
    checkpoints.keep_newest(tmp_path, 5)
    assert len(_names(tmp_path)) == 4
    with pytest.raises(ValueError, match="at least 1"):
        checkpoints.keep_newest(tmp_path, 0)


def test_nothing_old_is_deleted_when_the_newest_is_damaged(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        _save(checkpoints.step_directory(tmp_path, step))
    _flip(tmp_path / "step-00000003")
    with pytest.raises(DataError):
        checkpoints.keep_newest(tmp_path, 1)
    assert len(_names(tmp_path)) == 3


def test_unreadable_files_are_errors_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 50)
    (tmp_path / "state.json").write_text("{")
    for name in ("model", "absent"):
        with pytest.raises(DataError, match=name):
            checkpoints.load_tensors(tmp_path, name)
    for name in ("state", "absent"):
        with pytest.raises(DataError, match=name):
            checkpoints.load_document(tmp_path, name)
