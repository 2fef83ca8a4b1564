"""Scores of a model on the splits of its tasks, during training and at its end."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mtl import metrics
from mtl.data.subsets import nested_subset
from mtl.evaluation.evaluate import Evaluator, score_predictions
from mtl.evaluation.label_map import read_by
from mtl.evaluation.predictions import write_predictions
from mtl.models.multitask import MultitaskModel
from mtl.records import SplitRecord
from mtl.rundir import StageDirectory
from mtl.stages.datasets import EvaluatedData, TaskData
from mtl.tasks.spec import TaskSpec

logger = logging.getLogger("mtl")


@dataclass(frozen=True)
class Snapshot:
    """An evaluation during training: values for the log, and the one number that selection reads."""

    values: dict[str, float]
    score: float
    primaries: dict[str, float]
    """Each task's primary score on the same rows, by name; the one number is made from these."""


def score_snapshot(
    model: MultitaskModel, data: Sequence[TaskData], evaluator: Evaluator, *, holdout: bool, rows: int | None
) -> Snapshot:
    """Score the tasks on their dev splits, or on the holdout of train; on ``rows`` fixed rows of each if set.

    The number is the task's primary score, for several tasks the mean over those that count in their suites. Scores on
    the holdout or on a subset are logged under ``eval_holdout/`` and ``eval_subset/``, so that they cannot be taken for
    a dev split's.
    """
    prefix = "eval" + ("_holdout" if holdout else "") + ("_subset" if rows is not None else "")
    found: dict[str, dict[str, dict[str, float]]] = {}
    primaries: dict[str, float] = {}
    for task in data:
        if holdout:
            scores = {"holdout": _score(model, task, "train", evaluator, task.selection_rows(), rows)}
            primary = float(np.mean([scores["holdout"][name] for name in task.spec.primary]))
        else:
            scores = {name: _score(model, task, name, evaluator, None, rows) for name in task.dev}
            primary = metrics.primary(task.spec, scores)
        found[task.spec.name], primaries[task.spec.name] = scores, primary
    specs = [task.spec for task in data]
    return Snapshot(log_values(prefix, specs, found, primaries), mean_primary(specs, primaries), primaries)


def log_values(
    prefix: str,
    specs: Sequence[TaskSpec],
    scores: Mapping[str, Mapping[str, Mapping[str, float]]],
    primaries: Mapping[str, float],
) -> dict[str, float]:
    """Scores by task, split and metric under the names that logs use; the split is named where a task has several."""
    values: dict[str, float] = {}
    for task, splits in scores.items():
        for split, found in splits.items():
            label = task if len(splits) == 1 else f"{task}/{split}"
            values |= {f"{prefix}/{label}/{name}": value for name, value in found.items()}
        values[f"{prefix}/{task}/primary"] = primaries[task]
    return values | _suite_values(prefix, specs, primaries)


def score_dev(
    model: MultitaskModel,
    data: TaskData | EvaluatedData,
    head: TaskSpec,
    evaluator: Evaluator,
    directory: StageDirectory,
    *,
    save: bool,
) -> dict[str, SplitRecord]:
    """The rows of the task's dev splits that are scored at the end, read by ``head``.

    Predictions are written to the stage's directory if ``save``.
    """
    records = {}
    for name, store in data.dev.items():
        rows = data.scored_rows(name)
        predicted = read_by(head, data.spec, evaluator.predict(model, head, store, rows))
        scores = score_predictions(data.spec, predicted)
        if save:
            write_predictions(directory.predictions(data.spec.name, name), data.spec, predicted)
        if scores.flags:
            constant = "all predictions, or all labels, are the same; such a correlation counts as 0"
            logger.warning("%s %s: %s", data.spec.name, name, constant)
        records[name] = SplitRecord(
            metrics=scores.metrics,
            rows=rows.size,
            rows_at_hand=store.rows if rows.size < store.rows else None,
            rows_official=data.official_rows(name),
            rows_sha256=store.data_fingerprint,
            flags=scores.flags,
        )
    return records


def mean_primary(specs: Sequence[TaskSpec], primaries: Mapping[str, float]) -> float:
    """Mean over the tasks that count in their suite's score; over all where none does."""
    counted = [spec for spec in specs if spec.in_suite_score] or specs
    return float(np.mean([primaries[spec.name] for spec in counted]))


def _score(
    model: MultitaskModel,
    data: TaskData,
    split: str,
    evaluator: Evaluator,
    chosen: np.ndarray | None,
    rows: int | None,
) -> dict[str, float]:
    store = data.train if split == "train" else data.dev[split]
    places = data.scored_rows(split) if chosen is None else chosen
    predicted = evaluator.predict(model, data.spec, store, nested_subset(data.spec.name, places, rows))
    return score_predictions(data.spec, predicted).metrics


def _suite_values(prefix: str, specs: Sequence[TaskSpec], primaries: Mapping[str, float]) -> dict[str, float]:
    """The suites' scores by log name, where more than one task of a suite was scored."""
    values = {}
    for suite in sorted({spec.suite for spec in specs}):
        members = [spec for spec in specs if spec.suite == suite and not spec.evaluate_only]
        score = metrics.suite_score(primaries, members).score if len(members) > 1 else None
        if score is not None:
            values[f"{prefix}/{suite}/score"] = score
    return values
