"""Predictions as Parquet files, one a split: what every later comparison row by row is made from."""

import os
from pathlib import Path

import numpy as np

from mtl.evaluation.evaluate import SplitPredictions
from mtl.tasks.spec import TaskSpec


def write_predictions(path: Path, spec: TaskSpec, predicted: SplitPredictions) -> None:
    """Columns ``row_id`` int64, ``label`` and ``prediction`` (names, or float32 scores), ``logits`` list<float32>.

    Rows are in the order of the split's file; ``label`` is null where the split has none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.float32() if spec.kind == "regression" else pa.string()
    labels = [None] * predicted.rows.size if predicted.labels is None else _values(spec, predicted.labels)
    table = pa.table(
        {
            "row_id": pa.array(predicted.rows, pa.int64()),
            "label": pa.array(labels, kind),
            "prediction": pa.array(_values(spec, predicted.predictions), kind),
            "logits": pa.array(list(predicted.outputs), pa.list_(pa.float32())),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, temporary)
    os.replace(temporary, path)


def _values(spec: TaskSpec, values: np.ndarray) -> list[str] | list[float]:
    if spec.kind == "regression":
        return [float(value) for value in values]
    return [spec.labels[int(value)] for value in values]
