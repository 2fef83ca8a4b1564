"""Rows of a split: labels mapped by name, faults named by file and line, counts equal to what is read."""

import hashlib
import types
from pathlib import Path

import numpy as np
import pytest

from mtl import tasks
from mtl.data.sources import count_rows, read_rows, source_fingerprint
from mtl.errors import ConfigError, DataError
from mtl.tasks.spec import SplitSpec, TaskSpec


def _write(root: Path, name: str, file: str, content: str) -> Path:
    path = root / "glue" / tasks.get(name).directory / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


def test_labels_are_mapped_by_name(tmp_path: Path) -> None:
    content = "gold_label\tsentence2\tindex\tsentence1\ncontradiction\th\t0\tp\nentailment\t\t1\tq\nneutral\tx\t2\ty\n"
    path = _write(tmp_path, "glue/mnli", "train.tsv", content)
    rows = read_rows(tasks.get("glue/mnli"), "train", tmp_path)
    assert rows.texts == (["p", "q", "y"], ["h", "", "x"])
    assert rows.labels is not None
    assert rows.labels.dtype == np.int64
    assert rows.labels.tolist() == [2, 0, 1]
    assert rows.fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(rows) == 3


def test_label_values_stand_for_names(tmp_path: Path) -> None:
    _write(tmp_path, "glue/wnli", "dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n1\tc\td\t0\n")
    rows = read_rows(tasks.get("glue/wnli"), "dev", tmp_path)
    assert rows.labels is not None
    assert [tasks.get("glue/wnli").labels[index] for index in rows.labels] == ["entailment", "not_entailment"]


def test_cola_has_no_header_in_train_but_one_in_test(tmp_path: Path) -> None:
    _write(tmp_path, "glue/cola", "train.tsv", "gj04\t1\t\tFirst .\ngj04\t0\t*\tSecond .\n")
    _write(tmp_path, "glue/cola", "test.tsv", "index\tsentence\n0\tThird .\n")
    train = read_rows(tasks.get("glue/cola"), "train", tmp_path)
    test = read_rows(tasks.get("glue/cola"), "test", tmp_path)
    assert train.texts == (["First .", "Second ."],)
    assert train.labels is not None
    assert train.labels.tolist() == [1, 0]
    assert test.texts == (["Third ."],)
    assert test.labels is None


def test_scores_are_read_as_float32(tmp_path: Path) -> None:
    _write(tmp_path, "glue/stsb", "dev.tsv", "sentence1\tsentence2\tscore\na\tb\t0\nc\td\t3.800\ne\tf\t5.000\n")
    labels = read_rows(tasks.get("glue/stsb"), "dev", tmp_path).labels
    assert labels is not None
    assert labels.dtype == np.float32
    np.testing.assert_array_equal(labels, np.array([0.0, 3.8, 5.0], dtype=np.float32))


@pytest.mark.parametrize("value", ["-1", "2", "", "not_entailment ", "Entailment", "0"])
def test_a_foreign_label_is_refused_with_file_line_and_value(tmp_path: Path, value: str) -> None:
    _write(tmp_path, "glue/rte", "dev.tsv", f"sentence1\tsentence2\tlabel\na\tb\tentailment\nc\td\t{value}\n")
    with pytest.raises(DataError, match=rf"RTE/dev\.tsv, line 3: label '{value}'"):
        read_rows(tasks.get("glue/rte"), "dev", tmp_path)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "5.01", "-0.1", "", "four", "-1"])
def test_a_score_that_cannot_be_is_refused(tmp_path: Path, value: str) -> None:
    _write(tmp_path, "glue/stsb", "dev.tsv", f"sentence1\tsentence2\tscore\na\tb\t{value}\n")
    with pytest.raises(DataError, match=rf"STS-B/dev\.tsv, line 2: score '{value}'"):
        read_rows(tasks.get("glue/stsb"), "dev", tmp_path)


def test_the_line_of_a_bad_label_counts_dropped_lines(tmp_path: Path) -> None:
    spec = tasks.get("glue/rte")
    part = spec.splits["dev"].model_copy(update={"official_rows": 2})
    spec = spec.model_copy(update={"splits": {**spec.splits, "dev": part}})
    _write(tmp_path, "glue/rte", "dev.tsv", "sentence1\tsentence2\tlabel\na\tb\tentailment\ntorn\nc\td\toops\n")
    with pytest.raises(DataError, match="line 4: label 'oops'"):
        read_rows(spec, "dev", tmp_path)


def test_missing_file_says_both_ways_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_rows(tasks.get("glue/rte"), "train", tmp_path)
    message = str(caught.value)
    assert str(tmp_path / "glue" / "RTE" / "train.tsv") in message
    for part in ("data.root", "MTL_DATA_DIR", "nyu-mll/glue", "configuration rte"):
        assert part in message
    assert count_rows(tasks.get("glue/rte"), "train", tmp_path) is None


def test_no_data_root_is_missing_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data root is set"):
        read_rows(tasks.get("glue/rte"), "train", None)
    assert count_rows(tasks.get("glue/rte"), "train", None) is None


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "glue" / "RTE" / "train.tsv").mkdir(parents=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(tasks.get("glue/rte"), "train", tmp_path)


def test_unknown_split_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="dev_matched, dev_mismatched"):
        read_rows(tasks.get("glue/mnli"), "dev", None)


@pytest.mark.parametrize("directory", ["../RTE", "/RTE"])
def test_a_task_cannot_reach_outside_the_data_root(tmp_path: Path, directory: str) -> None:
    spec = tasks.get("glue/rte").model_copy(update={"directory": directory})
    with pytest.raises(ConfigError, match="outside the data root"):
        read_rows(spec, "train", tmp_path)


def _generated_spec() -> TaskSpec:
    return TaskSpec(
        name="made/up",
        kind="classification",
        reader="generated",
        directory="",
        text_columns=("text",),
        label_column="label",
        labels=("no", "yes"),
        metrics=("accuracy",),
        primary=("accuracy",),
        splits={
            "train": SplitSpec(file="", official_rows=2),
            "dev": SplitSpec(file="", official_rows=2),
            "test": SplitSpec(file="", official_rows=2, labelled=False),
        },
    )


def test_generated_rows_need_no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(task: str, split: str) -> dict[str, list[str]]:
        columns = {"text": [f"{task} {split}", "b"]}
        return columns if split == "test" else {**columns, "label": ["yes", "no"]}

    monkeypatch.setattr(tasks, "mini", types.SimpleNamespace(generate=generate), raising=False)
    spec = _generated_spec()
    train, dev, test = (read_rows(spec, split, None) for split in ("train", "dev", "test"))
    assert train.texts == (["made/up train", "b"],)
    assert train.labels is not None
    assert train.labels.tolist() == [1, 0]
    assert test.labels is None
    assert len({train.fingerprint, dev.fingerprint, test.fingerprint}) == 3
    assert read_rows(spec, "train", None).fingerprint == train.fingerprint
    assert count_rows(spec, "train", None) == 2


def test_real_files_count_as_they_read(shared_data: Path) -> None:
    seen = 0
    for name in ("glue/cola", "glue/mrpc", "glue/stsb", "glue/rte", "glue/wnli"):
        spec = tasks.get(name)
        for split, part in spec.splits.items():
            rows = read_rows(spec, split, shared_data)
            assert len(rows) == count_rows(spec, split, shared_data) == part.official_rows, (name, split)
            assert rows.dropped_lines == 0
            assert (rows.labels is not None) == part.labelled
            seen += 1
    assert seen == 15


def test_real_partial_files_read_by_column_name(shared_data: Path) -> None:
    for name, rows_here in (("glue/mnli", 917), ("glue/qnli", 5463)):
        spec = tasks.get(name)
        rows = read_rows(spec, spec.dev_splits[-1], shared_data)
        assert len(rows) == rows_here
        assert rows.labels is not None
        # No class is so rare in these files; a column read by position would show here.
        assert np.bincount(rows.labels, minlength=spec.outputs).min() > rows_here / 4


def test_mini_rows_agree_with_their_specs() -> None:
    for name in tasks.expand(["mini"]):
        spec = tasks.get(name)
        for split, part in spec.splits.items():
            rows = read_rows(spec, split, None)
            assert len(rows) == count_rows(spec, split, None) == part.official_rows, (name, split)
            assert (rows.labels is not None) == part.labelled


def test_the_fingerprint_needs_no_parsing(tmp_path: Path) -> None:
    _write(tmp_path, "glue/rte", "dev.tsv", "sentence1\tsentence2\tlabel\na\tb\tentailment\n")
    rte, mini = tasks.get("glue/rte"), tasks.get("mini/entail2")
    assert source_fingerprint(rte, "dev", tmp_path) == read_rows(rte, "dev", tmp_path).fingerprint
    assert source_fingerprint(mini, "train", None) == read_rows(mini, "train", None).fingerprint
    _write(tmp_path, "glue/rte", "train.tsv", "not a table of this task")
    assert len(source_fingerprint(rte, "train", tmp_path)) == 64


def test_the_fingerprint_of_missing_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file: .*MTL_DATA_DIR"):
        source_fingerprint(tasks.get("glue/rte"), "train", tmp_path)
    with pytest.raises(ConfigError, match="has no split"):
        source_fingerprint(tasks.get("glue/rte"), "trainn", tmp_path)
