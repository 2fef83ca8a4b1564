"""Prediction files: the columns, types and order that comparisons row by row rely on."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mtl.evaluation.evaluate import SplitPredictions
from mtl.evaluation.predictions import write_predictions
from tests.training.toy_training import SCORES, THREE, toy_spec

OUTPUTS = np.array([[0.1, 2.0, -1.0], [3.0, 0.0, 0.5]], dtype=np.float32)


def classes(labels: list[int] | None) -> SplitPredictions:
    found = None if labels is None else np.array(labels)
    return SplitPredictions(np.array([4, 2]), OUTPUTS, OUTPUTS.argmax(axis=1), found)


def test_classes_are_written_by_name_in_the_given_order(tmp_path: Path) -> None:
    path = tmp_path / "predictions" / "toy" / "dev.parquet"
    write_predictions(path, toy_spec(THREE), classes([2, 0]))
    table = pq.read_table(path)
    assert table.schema.names == ["row_id", "label", "prediction", "logits"]
    assert table.schema.types == [pa.int64(), pa.string(), pa.string(), pa.list_(pa.float32())]
    assert table["row_id"].to_pylist() == [4, 2]
    assert table["label"].to_pylist() == ["class 2", "class 0"]
    assert table["prediction"].to_pylist() == ["class 1", "class 0"]
    np.testing.assert_array_equal(np.array(table["logits"].to_pylist(), dtype=np.float32), OUTPUTS)


def test_scores_are_written_as_numbers(tmp_path: Path) -> None:
    outputs = np.array([[1.25], [np.nan]], dtype=np.float32)
    labels = np.array([0.5, 5.0], dtype=np.float32)
    path = tmp_path / "dev.parquet"
    write_predictions(path, toy_spec(SCORES), SplitPredictions(np.array([0, 1]), outputs, outputs[:, 0], labels))
    table = pq.read_table(path)
    assert table.schema.types == [pa.int64(), pa.float32(), pa.float32(), pa.list_(pa.float32())]
    assert table["label"].to_pylist() == [0.5, 5.0]
    predictions = table["prediction"].to_pylist()
    assert predictions[0] == 1.25
    assert np.isnan(predictions[1]), "a NaN shows as NaN"


def test_labels_are_null_where_the_split_has_none(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    write_predictions(path, toy_spec(THREE), classes(None))
    table = pq.read_table(path)
    assert table.schema.field("label").type == pa.string()
    assert table["label"].to_pylist() == [None, None]


def test_an_older_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "dev.parquet"
    write_predictions(path, toy_spec(THREE), classes([2, 0]))
    write_predictions(path, toy_spec(THREE), classes([1, 1]))
    assert pq.read_table(path)["label"].to_pylist() == ["class 1", "class 1"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["dev.parquet"]


def test_a_split_without_rows_has_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "dev.parquet"
    empty = SplitPredictions(
        np.zeros(0, dtype=np.int64), np.zeros((0, 3), dtype=np.float32), np.zeros(0, dtype=np.int64), None
    )
    write_predictions(path, toy_spec(THREE), empty)
    table = pq.read_table(path)
    assert table.num_rows == 0
    assert table.schema.types == [pa.int64(), pa.string(), pa.string(), pa.list_(pa.float32())]
