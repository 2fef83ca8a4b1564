"""The predictions that a run saved for a split, read back and held against what its result says of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl import metrics
from mtl.errors import DataError
from mtl.records import SplitRecord, StageName
from mtl.studies.find import FoundRun
from mtl.tasks.spec import TaskSpec

# Scores are times 100; what is read back was rounded to single precision at most.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class SavedPredictions:
    """Of N examples: ``rows`` (N,) are places in the split's file, the others class indices or scores (N,)."""

    rows: npt.NDArray[np.int64]
    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]


def predictions_path(run: FoundRun, stage: StageName, spec: TaskSpec, split: str) -> Path:
    """Where a run that is none of several folds has the predictions of one of its stages."""
    # A task that is only evaluated has no training of its own: it lies with the task whose head scored it.
    directory = run.directory.stage(stage, None if stage == "joint" else spec.scored_by or spec.name)
    return directory.predictions(spec.name, split)


def scored_parts(run: FoundRun, stage: StageName, spec: TaskSpec) -> tuple[FoundRun, ...]:
    """The runs whose predictions the score of a task is of: of each fold, or of the first alone if it has none."""
    return run.parts if run.result.stages[stage].tasks[spec.name].kfold is not None else run.parts[:1]


def joined_predictions(parts: Sequence[FoundRun], stage: StageName, spec: TaskSpec, split: str) -> SavedPredictions:
    """The predictions of ``parts`` together, in the order of their rows; errors as of :func:`read_predictions`.

    DataError too where an example was scored by two of them.
    """
    found = [
        read_predictions(
            predictions_path(part, stage, spec, split), spec, part.result.stages[stage].tasks[spec.name].splits[split]
        )
        for part in parts
    ]
    rows = np.concatenate([each.rows for each in found])
    if np.unique(rows).size < rows.size:
        places = " and ".join(str(part.directory.path) for part in parts)
        raise DataError(f"{places} have scored some examples of {spec.name} twice, so they are no folds of it; {_ANEW}")
    order = np.argsort(rows)
    labels, predictions = (
        np.concatenate([getattr(each, name) for each in found])[order] for name in ("labels", "predictions")
    )
    return SavedPredictions(rows[order], labels, predictions)


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
