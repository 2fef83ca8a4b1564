"""Checkpoints: what was saved comes back, damage is found, and only what is older than a whole one is deleted."""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_checkpoints import STATE, names_in, save_small, weight_in

from mtl.errors import DataError, NonFiniteError
from mtl.runtime import checkpoint_files as checkpoints


def test_content_comes_back_with_types_shapes_and_added_files(tmp_path: Path) -> None:
    def add(directory: Path) -> None:
        (directory / "tokenizer").mkdir()
        (directory / "tokenizer/vocab.txt").write_text("a\n")

    save_small(tmp_path / "deep/last", files=add)
    directory = tmp_path / "deep/last"
    checkpoints.verify_checkpoint(directory)
    model = checkpoints.load_tensors(directory, "model")
    assert torch.equal(model["encoder.weight"], torch.ones(2, 3))
    assert torch.equal(model["ids"], torch.arange(3))
    assert checkpoints.load_tensors(directory, "optimizer")["moment"].dtype == torch.bfloat16
    assert checkpoints.load_document(directory, "state") == STATE
    assert (directory / "tokenizer/vocab.txt").read_text() == "a\n"
    assert names_in(directory.parent) == ["last"]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    save_small(tmp_path / "a")
    save_small(tmp_path / "b")
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
        save_small(tmp_path / "last")
    finally:
        os.umask(old)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "last").iterdir()} == {0o640}


def test_a_checkpoint_is_replaced_whole(tmp_path: Path) -> None:
    save_small(tmp_path / "last", 1.0, files=lambda directory: (directory / "old.txt").touch())
    save_small(tmp_path / "last", 2.0)
    assert weight_in(tmp_path / "last") == 2.0
    assert not (tmp_path / "last/old.txt").exists()
    assert names_in(tmp_path) == ["last"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path, bad: float) -> None:
    save_small(tmp_path / "last")
    with pytest.raises(NonFiniteError, match=r"encoder\.weight"):
        save_small(tmp_path / "last", bad)
    assert weight_in(tmp_path / "last") == 1.0


def test_a_document_that_is_not_finite_is_refused_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=r"state\.best\.1\.score"):
        checkpoints.save_checkpoint(
            tmp_path / "last", tensors={}, documents={"state": {"best": [1.0, {"score": float("-inf")}]}}
        )
    assert names_in(tmp_path) == []


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
        save_small(checkpoints.step_directory(tmp_path, step))
    damage(tmp_path / "step-100000000")
    with caplog.at_level(logging.WARNING, logger="mtl"):
        assert checkpoints.newest_valid_checkpoint(tmp_path) == tmp_path / "step-00001000"
    assert "step-100000000" in caplog.text
    assert reason in caplog.text


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    (tmp_path / "step-1").mkdir()
    save_small(tmp_path / "last")
    assert checkpoints.newest_valid_checkpoint(tmp_path) is None
    assert checkpoints.newest_valid_checkpoint(tmp_path / "absent") is None


def test_the_oldest_go_and_named_ones_stay(tmp_path: Path) -> None:
    for name in ("step-00000001", "step-00000002", "step-00000010", "best", "last"):
        save_small(tmp_path / name)
    checkpoints.keep_newest(tmp_path, 2)
    assert names_in(tmp_path) == ["best", "last", "step-00000002", "step-00000010"]
    checkpoints.keep_newest(tmp_path, 5)
    assert len(names_in(tmp_path)) == 4
    with pytest.raises(ValueError, match="at least 1"):
        checkpoints.keep_newest(tmp_path, 0)


def test_nothing_old_is_deleted_when_the_newest_is_damaged(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save_small(checkpoints.step_directory(tmp_path, step))
    _flip(tmp_path / "step-00000003")
    with pytest.raises(DataError):
        checkpoints.keep_newest(tmp_path, 1)
    assert len(names_in(tmp_path)) == 3


def test_unreadable_files_are_errors_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 50)
    (tmp_path / "state.json").write_text("{")
    for name in ("model", "absent"):
        with pytest.raises(DataError, match=name):
            checkpoints.load_tensors(tmp_path, name)
    for name in ("state", "absent"):
        with pytest.raises(DataError, match=name):
            checkpoints.load_document(tmp_path, name)
