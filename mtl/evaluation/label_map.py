"""Predictions of one task's head as predictions of another task, whose labels say less or go by other names."""

import dataclasses

import numpy as np
import numpy.typing as npt

from mtl.errors import ConfigError
from mtl.evaluation.evaluate import SplitPredictions
from mtl.tasks.spec import TaskSpec

Predictions = npt.NDArray[np.int64] | npt.NDArray[np.float32]
"""Class indices (N,), or scores (N,) of a regression."""


def apply_label_map(spec: TaskSpec, head_spec: TaskSpec, head_predictions: Predictions) -> Predictions:
    """Class indices (N,) of ``head_spec`` as class indices (N,) of ``spec``, the task that is only evaluated.

    A label goes where ``spec.label_map`` sends it, else to the label of the same name. Scores of a regression stay as
    they are. Raises ConfigError for tasks of two kinds, for a label of the head that leads nowhere, and for one in the
    map that the head does not have.
    """
    if spec.kind != head_spec.kind:
        raise ConfigError(f"{spec.name} is a {spec.kind}, but {head_spec.name}, whose head scores it, {head_spec.kind}")
    if spec.kind == "regression":
        return head_predictions
    stray = sorted(set(spec.label_map) - set(head_spec.labels))
    if stray:
        raise ConfigError(
            f"{spec.name}: label_map names {', '.join(stray)}; the labels of {head_spec.name} are "
            f"{', '.join(head_spec.labels)}"
        )
    goals = {label: spec.label_map.get(label, label) for label in head_spec.labels}
    lost = [label for label, goal in goals.items() if goal not in spec.labels]
    if lost:
        raise ConfigError(
            f"{spec.name}: {', '.join(lost)} of {head_spec.name} is none of its labels {', '.join(spec.labels)}; say "
            "in label_map what it counts as"
        )
    return np.array([spec.labels.index(goal) for goal in goals.values()], dtype=np.int64)[
        head_predictions.astype(np.int64)
    ]


def read_by(head_spec: TaskSpec, spec: TaskSpec, predicted: SplitPredictions) -> SplitPredictions:
    """What the head of ``head_spec`` predicted for rows of ``spec``, in its own labels; outputs stay the head's."""
    if spec.name == head_spec.name:
        return predicted
    return dataclasses.replace(predicted, predictions=apply_label_map(spec, head_spec, predicted.predictions))
