"""The predictions that a run saved for a split, read back and held against what its result says of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl import metrics
from mtl.errors import DataError
from mtl.records import SplitRecord
from mtl.tasks.spec import TaskSpec

# Scores are times 100; what is read back was rounded to single precision at most.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class SavedPredictions:
    """Of N examples: ``rows`` (N,) are places in the split's file, the others class indices or scores (N,)."""

    rows: npt.NDArray[np.int64]
    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]


def read_predictions(path: Path, spec: TaskSpec, record: SplitRecord) -> SavedPredictions:
    """The predictions at ``path``, which give the scores of ``record``.

    DataError where the file is missing, unreadable, or not what the result was computed from.
    """
    rows, labels, predictions = _columns(path)
    if len(rows) != record.rows or any(value is None for value in labels):
        raise DataError(f"{path} has {len(rows)} predictions, the result is of {record.rows} labelled rows; {_ANEW}")
    saved = SavedPredictions(
        np.array(rows, dtype=np.int64), _values(spec, labels, path), _values(spec, predictions, path)
    )
    found = metrics.score(spec, saved.predictions, saved.labels).metrics
    for name, value in record.metrics.items():
        if name in found and abs(found[name] - value) > _TOLERANCE:
            raise DataError(f"{path}: {name} is {found[name]:.4f}, but {value:.4f} in the run's result; {_ANEW}")
    return saved


_ANEW = "the file is not of this result: run it again"


def _columns(path: Path) -> tuple[list[int], list[Any], list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["row_id", "label", "prediction"])
    except FileNotFoundError as error:
        raise DataError(
            f"no predictions at {path}: the run was made with evaluation.save_predictions=false, or they were deleted; "
            "run it again"
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as predictions: {error}; run it again") from error
    rows, labels, predictions = (table.column(name).to_pylist() for name in ("row_id", "label", "prediction"))
    return rows, labels, predictions


def _values(spec: TaskSpec, values: list[Any], path: Path) -> npt.NDArray[Any]:
    if spec.kind == "regression":
        return np.array(values, dtype=np.float32)
    index_of = {label: index for index, label in enumerate(spec.labels)}
    strangers = sorted({str(value) for value in values} - set(index_of))
    if strangers:
        raise DataError(f"{path} holds labels that {spec.name} does not have: {', '.join(strangers[:3])}")
    return np.array([index_of[value] for value in values], dtype=np.int64)
