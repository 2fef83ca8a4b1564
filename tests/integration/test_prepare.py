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

    monkeypatch.setattr(build_store, "build_store", build)
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


def test_tasks_that_are_only_evaluated_are_prepared_too(tmp_path: Path) -> None:
    header, row = "index\tsentence1\tsentence2\tgold_label", "0\tIt rains.\tIt is wet.\tentailment"
    for name, text in {
        "MNLI/train": f"{header}\n{row}\n",
        "MNLI/dev_matched": f"{header}\n{row}\n{row}\n",
        "MNLI/dev_mismatched": f"{header}\n{row}\n",
    }.items():
        path = tmp_path / "glue" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    same = "name: mine/same\nfiles: {dev: same.tsv}\ntexts: [sentence1, sentence2]\nlabel: gold_label\n"
    same += "labels: [entailment, neutral, contradiction]\nevaluate_only: true\nscored_by: glue/mnli\n"
    (tmp_path / "same.yaml").write_text(same, encoding="utf-8")
    (tmp_path / "same.tsv").write_text(f"{header}\n{row}\n{row}\n{row}\n", encoding="utf-8")
    tasks = f"tasks=[glue/mnli,{tmp_path / 'same.yaml'}]"
    config = api.load_config([], settings(tmp_path / "run", tasks, f"data.root={tmp_path}"))
    prepared = api.prepare(config)
    assert [(split.task, split.split, split.rows) for split in prepared.splits] == [
        ("glue/mnli", "train", 1),
        ("glue/mnli", "dev_matched", 2),
        ("glue/mnli", "dev_mismatched", 1),
        ("mine/same", "dev", 3),
    ]
