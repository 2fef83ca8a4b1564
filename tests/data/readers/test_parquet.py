"""Parquet files of the user's own."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_tasks import own_task, refused

from mtl.data.sources import count_rows, read_rows
from mtl.errors import DataError


def _write(folder: Path, **columns: Any) -> None:
    pq.write_table(pa.table(columns), folder / "train.parquet")


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    _write(tmp_path, label=["yes", "no"], b=["", "y"], more=[1, 2], a=["x", "z"])
    spec = own_task(tmp_path, "parquet")
    rows = read_rows(spec, "train", None)
    assert rows.texts == (["x", "z"], ["", "y"])
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0]
    assert count_rows(spec, "train", None) == 2


def test_categories_and_numbers_are_labels_too(tmp_path: Path) -> None:
    _write(tmp_path, a=["x", "z"], b=["", "y"], label=pa.array(["yes", "no"]).dictionary_encode())
    rows = read_rows(own_task(tmp_path, "parquet"), "train", None)
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0]
    _write(tmp_path, a=["x"], b=[""], label=pa.array([2.5], pa.float32()))
    rows = read_rows(own_task(tmp_path, "parquet", labels=None, score_range=["0", "5"]), "train", None)
    assert rows.labels is not None
    assert rows.labels.tolist() == [2.5]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x"], "label": ["yes"]}, ": column 'b' is absent among the columns a, label"),
        ({"a": ["x", None], "b": ["y", "y"], "label": ["yes", "yes"]}, ", row 2: column 'a' holds nothing"),
        ({"a": [1], "b": ["y"], "label": ["yes"]}, ", row 1: column 'a' holds 1, which is no text"),
        ({"a": ["x"], "b": ["y"], "label": [None]}, ", row 1: column 'label' holds nothing"),
        ({"a": ["x", "x"], "b": ["y", "y"], "label": ["no", "oh"]}, ", row 2: label 'oh' in column 'label' is none of"),
    ],
)
def test_faults_are_named_by_file_and_row(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    _write(tmp_path, **columns)
    assert f"train.parquet{message}" in refused(own_task(tmp_path, "parquet"))


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_text("a,b,label\n")
    assert "train.parquet: cannot be read as Parquet" in refused(own_task(tmp_path, "parquet"))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        count_rows(own_task(tmp_path, "parquet"), "train", None)
