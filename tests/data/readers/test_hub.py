"""The hub's form of GLUE, and of data sets of the user's own, read from small local copies."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest
from own_tasks import own_task, refused

from mtl import tasks
from mtl.cli import main
from mtl.data.sources import count_rows, read_rows, source_fingerprint
from mtl.errors import DataError
from mtl.tasks import registry

TEXTS = {
    "cola": ("sentence",),
    "sst2": ("sentence",),
    "mrpc": ("sentence1", "sentence2"),
    "stsb": ("sentence1", "sentence2"),
    "qqp": ("question1", "question2"),
    "mnli": ("premise", "hypothesis"),
    "qnli": ("question", "sentence"),
    "rte": ("sentence1", "sentence2"),
    "wnli": ("sentence1", "sentence2"),
}
"""The columns of the hub's configurations, from the data set's card, not from the module under test."""

CLASSES = {
    "cola": ("unacceptable", "acceptable"),
    "sst2": ("negative", "positive"),
    "mrpc": ("not_equivalent", "equivalent"),
    "qqp": ("not_duplicate", "duplicate"),
    "mnli": ("entailment", "neutral", "contradiction"),
    "qnli": ("entailment", "not_entailment"),
    "rte": ("entailment", "not_entailment"),
    "wnli": ("not_entailment", "entailment"),
}


def _data_set(texts: Sequence[str], classes: Sequence[str] | None, labels: Sequence[float]) -> datasets.Dataset:
    columns: dict[str, list[Any]] = {name: [f"{name} {row}" for row in range(len(labels))] for name in texts}
    label = datasets.ClassLabel(names=list(classes)) if classes else datasets.Value("float32")
    features = {name: datasets.Value("string") for name in texts} | {"label": label, "idx": datasets.Value("int32")}
    rows = {**columns, "label": list(labels), "idx": list(range(len(labels)))}
    return datasets.Dataset.from_dict(rows, features=datasets.Features(features))


def _save(data_set: datasets.Dataset, folder: Path, split: str, shard: str = "00000-of-00001") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data_set.to_parquet(folder / f"{split}-{shard}.parquet")


@pytest.fixture
def glue_copy(tmp_path: Path) -> Path:
    """A data root with a copy of the hub's GLUE and none of the official files."""
    for config, texts in TEXTS.items():
        classes = CLASSES.get(config)
        folder = tmp_path / "nyu-mll" / "glue" / config
        labels = list(range(len(classes))) if classes else [0.0, 4.4, 5.0]
        for split in (
            "train",
            *(("validation_matched", "validation_mismatched") if config == "mnli" else ("validation",)),
        ):
            _save(_data_set(texts, classes, labels), folder, split)
        for split in ("test_matched", "test_mismatched") if config == "mnli" else ("test",):
            _save(_data_set(texts, classes, [-1, -1]), folder, split)
    return tmp_path


@pytest.mark.parametrize("config", TEXTS)
def test_each_task_is_read_under_the_hubs_column_names(glue_copy: Path, config: str) -> None:
    spec = tasks.get(f"glue/{config}")
    for split, part in spec.splits.items():
        rows = read_rows(spec, split, glue_copy)
        assert rows.texts == tuple([f"{name} {row}" for row in range(len(rows))] for name in TEXTS[config])
        assert len(rows) == count_rows(spec, split, glue_copy)
        assert rows.fingerprint == source_fingerprint(spec, split, glue_copy)
        if not part.labelled:
            assert rows.labels is None
        elif spec.kind == "classification":
            assert rows.labels is not None
            # Written as 0, 1, ... of the hub's classes, so by name these are they.
            assert [spec.labels[index] for index in rows.labels] == list(CLASSES[config])
        else:
            assert rows.labels is not None
            assert rows.labels.tolist() == pytest.approx([0.0, 4.4, 5.0])


def test_splits_whose_names_begin_alike_are_not_mixed(glue_copy: Path) -> None:
    folder = glue_copy / "nyu-mll" / "glue" / "mnli"
    _save(_data_set(TEXTS["mnli"], CLASSES["mnli"], [2]), folder, "validation_mismatched")
    mnli = tasks.get("glue/mnli")
    assert [count_rows(mnli, split, glue_copy) for split in mnli.dev_splits] == [3, 1]


def test_an_official_file_comes_before_the_hub(glue_copy: Path) -> None:
    (glue_copy / "glue" / "RTE").mkdir(parents=True)
    (glue_copy / "glue" / "RTE" / "dev.tsv").write_text("sentence1\tsentence2\tlabel\nx\ty\tentailment\n")
    rte = tasks.get("glue/rte")
    assert read_rows(rte, "dev", glue_copy).texts == (["x"], ["y"])
    assert len(read_rows(rte, "train", glue_copy)) == 2


def test_the_commands_see_the_copy(glue_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "glue", f"data.root={glue_copy}", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["glue/mnli"]["splits"]["train"] == {"rows_official": 392702, "rows": 3}
    assert main(["plan", "glue", f"data.root={glue_copy}"]) == 0


def test_an_unlabelled_row_in_train_is_refused(glue_copy: Path) -> None:
    folder = glue_copy / "nyu-mll" / "glue" / "rte"
    _save(_data_set(TEXTS["rte"], CLASSES["rte"], [0, -1]), folder, "train")
    with pytest.raises(DataError, match=r"rte/train-.*\.parquet, row 2: label '-1' in column 'label' is none of"):
        read_rows(tasks.get("glue/rte"), "train", glue_copy)


def test_classes_in_another_order_are_mapped_by_name(glue_copy: Path) -> None:
    folder = glue_copy / "nyu-mll" / "glue" / "rte"
    _save(_data_set(TEXTS["rte"], CLASSES["rte"][::-1], [0, 1]), folder, "train")
    labels = read_rows(tasks.get("glue/rte"), "train", glue_copy).labels
    assert labels is not None
    assert labels.tolist() == [1, 0]


def test_several_files_are_one_split(glue_copy: Path) -> None:
    folder = glue_copy / "nyu-mll" / "glue" / "sst2"
    (folder / "train-00000-of-00001.parquet").unlink()
    for shard, labels in (("00000-of-00002", [0]), ("00001-of-00002", [1, 1])):
        _save(_data_set(TEXTS["sst2"], CLASSES["sst2"], labels), folder, "train", shard)
    labels = read_rows(tasks.get("glue/sst2"), "train", glue_copy).labels
    assert labels is not None
    assert labels.tolist() == [0, 1, 1]
    assert count_rows(tasks.get("glue/sst2"), "train", glue_copy) == 3


def test_unreachable_data_say_both_ways(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_rows(tasks.get("glue/rte"), "train", tmp_path)
    for part in (
        f"place the official file at {tmp_path}/glue/RTE/train.tsv",
        "nyu-mll/glue, configuration rte, split train: with a network",
        "HF_HUB_OFFLINE",
        "(That failed: nyu-mll/glue, rte, train: Couldn't reach 'nyu-mll/glue' on the Hub",
    ):
        assert part in str(caught.value)


def test_what_a_copy_lacks_is_asked_of_the_hub(glue_copy: Path) -> None:
    (glue_copy / "nyu-mll" / "glue" / "rte" / "train-00000-of-00001.parquet").unlink()
    with pytest.raises(DataError, match=r"\(That failed: nyu-mll/glue, rte, train: Couldn't reach 'nyu-mll/glue'"):
        read_rows(tasks.get("glue/rte"), "train", glue_copy)


def _own(folder: Path, **changes: Any) -> Any:
    definition = {"files": None, "hub": {"path": "./copy"}, "texts": ["a", "b"], "labels": ["no", "yes"]}
    return own_task(folder, "", **{**definition, **changes})


def test_a_folder_of_ones_own_in_the_hubs_form(tmp_path: Path) -> None:
    _save(_data_set(("a", "b"), ("no", "yes"), [1, 0]), tmp_path / "copy" / "data", "train")
    spec = _own(tmp_path)
    rows = read_rows(spec, "train", None)
    assert rows.texts == (["a 0", "a 1"], ["b 0", "b 1"])
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0]
    assert count_rows(spec, "train", None) == 2
    named = _own(tmp_path, labels={"0": "nein", "1": "ja"})
    labels = read_rows(named, "train", None).labels
    assert labels is not None
    assert [named.labels[index] for index in labels] == ["ja", "nein"]


def test_other_folders_are_read_by_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "train.csv").write_text("a,b,label\nx,y,yes\n")
    spec = _own(tmp_path)
    assert read_rows(spec, "train", None).texts == (["x"], ["y"])
    assert count_rows(spec, "train", None) == 1
    assert "(That failed:" in refused(spec, "dev")
    assert 'Unknown split "validation"' in refused(spec, "dev")
    assert count_rows(spec, "dev", None) is None


def test_a_hub_data_set_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    spec = _own(tmp_path, hub={"path": "no_such/data_set"})
    message = refused(spec)
    assert "its rows are on the Hugging Face hub as no_such/data_set, split train" in message
    assert "name files of your own in its definition" in message
    (tmp_path / "t.yaml").write_text("{name: mine/t, hub: {path: no_such/data_set}, texts: [a], labels: [no, yes]}")
    assert main(["plan", "quickstart", f"tasks=[{tmp_path}/t.yaml]"]) == 3
    assert "no_such/data_set" in capsys.readouterr().err


def test_a_data_set_that_is_code_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "copy.py").write_text("raise SystemExit('this ran')")
    assert "(That failed:" in refused(_own(tmp_path))
