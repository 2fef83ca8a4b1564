"""Labels and scores from the text of a column, each checked against what the task allows."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from mtl.errors import DataError
from mtl.tasks.spec import TaskSpec

Labels = npt.NDArray[np.int64] | npt.NDArray[np.float32]
Where = Callable[[int], str]
"""Says in a message where a row stands."""


def read_labels(spec: TaskSpec, values: Sequence[str], where: Where) -> Labels:
    """Class indices in the order of the task's labels, or float32 scores; DataError for a value that is neither."""
    return _class_indices(spec, values, where) if spec.kind == "classification" else _scores(spec, values, where)


def _class_indices(spec: TaskSpec, values: Sequence[str], where: Where) -> npt.NDArray[np.int64]:
    names = spec.label_values or {label: label for label in spec.labels}
    index_of = {value: spec.labels.index(label) for value, label in names.items()}
    for row, value in enumerate(values):
        if value not in index_of:
            raise DataError(
                f"{where(row)}: label {value!r} in column {spec.label_column!r} is none of "
                f"{', '.join(map(repr, index_of))}; an unlabelled or foreign row cannot be used here"
            )
    return np.array([index_of[value] for value in values], dtype=np.int64)


def _scores(spec: TaskSpec, values: Sequence[str], where: Where) -> npt.NDArray[np.float32]:
    low, high = spec.score_range or (-math.inf, math.inf)
    scores = np.empty(len(values), dtype=np.float32)
    for row, value in enumerate(values):
        try:
            score = float(value)
        except ValueError:
            score = math.nan
        # Written so that NaN fails it too.
        if not (math.isfinite(score) and low <= score <= high):
            raise DataError(
                f"{where(row)}: score {value!r} in column {spec.label_column!r} is no number from {low:g} to {high:g}"
            )
        scores[row] = score
    return scores
