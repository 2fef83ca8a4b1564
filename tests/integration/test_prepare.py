"""After `mtl prepare` a run finds everything in the caches."""

from pathlib import Path

import pytest
from tiny_runs import settings

from mtl import api
from mtl.cli import main
from mtl.data import build_store
from mtl.errors import DataError


def test_a_run_tokenises_nothing_that_was_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = settings(tmp_path / "run", f"data.cache={tmp_path / 'cache'}", "stages=[joint]", "training.updates=1")
    assert main(["prepare", *argv]) == 0
    shown = capsys.readouterr().out
    assert "mini/similarity  dev" in shown
    assert "KiB" in shown
    assert not (tmp_path / "run").exists()

    def build(*_: object, **__: object) -> None:
        raise AssertionError("tokenised again")

    monkeypatch.setattr(build_store, "_build", build)
    assert main(["run", *argv]) == 0


def test_sizes_are_those_of_the_stores(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    prepared = api.prepare(api.load_config([], settings(tmp_path / "run", f"data.cache={cache}")))
    assert [(split.task, split.split, split.rows) for split in prepared.splits] == [
        ("mini/entail2", "train", 200),
        ("mini/entail2", "dev", 400),
        ("mini/similarity", "train", prepared.splits[2].rows),
        ("mini/similarity", "dev", 400),
    ]
    files = sum(path.stat().st_size for path in (cache / "tokens").rglob("*.npy"))
    assert 0 < sum(split.bytes for split in prepared.splits) <= files
    assert prepared.cache == cache
    assert prepared.encoder_bytes > 0


def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    for setting in ("tasks=[glue/rte]", "encoder={kind: pretrained, path: ./nowhere}"):
        with pytest.raises(DataError):
            api.prepare(api.load_config([], settings(tmp_path / "run", setting)))
    assert list(tmp_path.iterdir()) == []
