"""Metrics of many confusion matrices at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.errors import ConfigError
from mtl.tasks.spec import MetricName, TaskSpec

Numbers = npt.NDArray[Any]
Scores = npt.NDArray[np.float64]


def of_confusion(name: MetricName, spec: TaskSpec, counts_PCC: Numbers) -> Scores:
    """A metric of each confusion matrix (..., labels, predictions), degenerate cases as in :mod:`mtl.metrics`.

    ConfigError for a metric that is not one of a confusion matrix.
    """
    right = np.trace(counts_PCC, axis1=-2, axis2=-1).astype(np.float64)
    actual, predicted = counts_PCC.sum(axis=-1).astype(np.float64), counts_PCC.sum(axis=-2).astype(np.float64)
    rows = actual.sum(axis=-1)
    if name == "accuracy":
        return np.asarray(right / rows)
    if name == "f1" and spec.positive_label is not None:
        positive = spec.labels.index(spec.positive_label)
        both = actual[..., positive] + predicted[..., positive]
        return np.asarray(2 * counts_PCC[..., positive, positive] / np.maximum(both, 1))
    if name in ("matthews", "r3"):
        spread = (rows**2 - (predicted**2).sum(axis=-1)) * (rows**2 - (actual**2).sum(axis=-1))
        covariance = right * rows - (predicted * actual).sum(axis=-1)
        return np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)
    raise ConfigError(f"{spec.name}: there is no paired test for metric {name!r}; leave the task out")
