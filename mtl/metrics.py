"""Scores of a task over a whole split, by its benchmark's own metrics: float64, times 100, unrounded.

N rows. Degenerate cases are decided here once: F1 is 0 where no positive was found, a correlation is 0 where one side
is constant, with the flag ``constant``. Nothing else is replaced: NaN is an error, never a score.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.errors import ConfigError, DataError, NonFiniteError
from mtl.tasks.spec import MetricName, TaskSpec

Numbers = npt.NDArray[Any]

CONSTANT = "constant"


@dataclass(frozen=True)
class Scores:
    """Metrics by name, times 100, and what a reader has to know about them."""

    metrics: dict[str, float]
    flags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SuiteScore:
    """A suite's unweighted mean: ``score`` over ``tasks``, ``score_all`` with the tasks that normally stay out.

    ``score`` is None where only such tasks were scored; ``score_all`` is None where the suite has none of them.
    """

    score: float | None
    score_all: float | None
    tasks: tuple[str, ...]


def score(spec: TaskSpec, predictions: Numbers, labels: Numbers) -> Scores:
    """All metrics of ``spec`` for ``predictions`` (N,) against ``labels`` (N,).

    Both are class indices in the order of the task's labels, or scores for a regression task. DataError for an empty
    split; NonFiniteError for a prediction or a metric that is NaN or infinite; ValueError for what no caller may
    pass: other shapes, or class indices that are none. ConfigError for a metric that needs more than class indices.
    """
    if predictions.shape != labels.shape or predictions.ndim != 1:
        raise ValueError(f"{spec.name}: predictions {predictions.shape} and labels {labels.shape} are not both (N,)")
    if len(labels) == 0:
        raise DataError(f"{spec.name}: the split has no rows, so it has no score; check its file")
    wrong = int(np.count_nonzero(~np.isfinite(predictions)))
    if wrong:
        first = int(np.flatnonzero(~np.isfinite(predictions))[0])
        raise NonFiniteError(f"{spec.name}: {wrong} of {len(labels)} predictions are not finite, the first at {first}")
    if spec.kind == "classification":
        predictions, labels = _class_indices(spec, predictions), _class_indices(spec, labels)
    constant = _is_constant(predictions) or _is_constant(labels)
    metrics: dict[str, float] = {name: 100.0 * _metric(name, spec, predictions, labels) for name in spec.metrics}
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise NonFiniteError(f"{spec.name}: {name} over {len(labels)} rows is {value}; look at the predictions")
    return Scores(metrics, [CONSTANT] if constant and not _CORRELATIONS.isdisjoint(spec.metrics) else [])


def primary(spec: TaskSpec, per_split: Mapping[str, Mapping[str, float]]) -> float:
    """The task's one number: the mean over its dev splits of the mean of its primary metrics.

    For MNLI that is the mean of matched and mismatched. DataError where a dev split was not scored.
    """
    missing = [split for split in spec.dev_splits if split not in per_split]
    if missing:
        raise DataError(f"{spec.name}: {', '.join(missing)} was not scored, so the task has no primary score")
    of_splits = [math.fsum(per_split[split][name] for name in spec.primary) for split in spec.dev_splits]
    return math.fsum(of_splits) / (len(spec.primary) * len(spec.dev_splits))


def suite_score(primaries: Mapping[str, float], specs: Sequence[TaskSpec]) -> SuiteScore:
    """The unweighted mean of ``primaries`` over ``specs``, the tasks of one suite.

    Every task of ``specs`` needs a primary score, since a mean that leaves one out silently compares with nothing:
    DataError names those that have none. ValueError for tasks of several suites.
    """
    if len({spec.suite for spec in specs}) != 1:
        raise ValueError(f"a suite score is over the tasks of one suite, not {[spec.name for spec in specs]}")
    missing = [spec.name for spec in specs if spec.name not in primaries]
    if missing:
        raise DataError(f"suite {specs[0].suite}: no primary score for {', '.join(missing)}; score them first")
    everything = tuple(spec.name for spec in specs)
    counted = tuple(spec.name for spec in specs if spec.in_suite_score)
    return SuiteScore(
        score=_mean(primaries, counted) if counted else None,
        score_all=_mean(primaries, everything) if len(counted) < len(everything) else None,
        tasks=counted,
    )


def accuracy(predictions: Numbers, labels: Numbers) -> float:
    """The share of rows predicted right."""
    return int(np.count_nonzero(predictions == labels)) / len(labels)


def f1(predictions: Numbers, labels: Numbers, positive: int) -> float:
    """Binary F1 of class ``positive``; 0 where no row of it was found, whether any was there or not."""
    found = int(np.count_nonzero((predictions == positive) & (labels == positive)))
    if found == 0:
        return 0.0
    return 2 * found / int(np.count_nonzero(predictions == positive) + np.count_nonzero(labels == positive))


def matthews(predictions: Numbers, labels: Numbers) -> float:
    """Matthews' correlation for any number of classes (R_K); 0 where predictions or labels are of one class.

    Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient", eq. 8.
    """
    classes = int(max(predictions.max(), labels.max())) + 1
    # Python's integers: products of counts overflow 64 bits beyond three billion rows, floats lose digits long before.
    predicted = [int(count) for count in np.bincount(predictions, minlength=classes)]
    actual = [int(count) for count in np.bincount(labels, minlength=classes)]
    rows = len(labels)
    right = int(np.count_nonzero(predictions == labels))
    covariance = right * rows - sum(p * a for p, a in zip(predicted, actual, strict=True))
    spread = (rows**2 - sum(p * p for p in predicted)) * (rows**2 - sum(a * a for a in actual))
    return covariance / math.sqrt(spread) if spread else 0.0


def pearson(predictions: Numbers, labels: Numbers) -> float:
    """Pearson's correlation in float64; 0 where one side is constant."""
    if _is_constant(predictions) or _is_constant(labels):
        return 0.0
    from scipy import stats

    return float(stats.pearsonr(predictions.astype(np.float64), labels.astype(np.float64)).statistic)


def spearman(predictions: Numbers, labels: Numbers) -> float:
    """Spearman's rank correlation, ties by their mean rank; 0 where one side is constant."""
    if _is_constant(predictions) or _is_constant(labels):
        return 0.0
    from scipy import stats

    return float(stats.spearmanr(predictions.astype(np.float64), labels.astype(np.float64)).statistic)


_PLAIN: dict[MetricName, Callable[[Numbers, Numbers], float]] = {
    "accuracy": accuracy,
    "matthews": matthews,
    "r3": matthews,
    "pearson": pearson,
    "spearman": spearman,
}
_CORRELATIONS = frozenset({"matthews", "r3", "pearson", "spearman"})


def _metric(name: MetricName, spec: TaskSpec, predictions: Numbers, labels: Numbers) -> float:
    if name == "f1" and spec.positive_label is not None:
        return f1(predictions, labels, spec.labels.index(spec.positive_label))
    if name in _PLAIN:
        return _PLAIN[name](predictions, labels)
    raise ConfigError(f"{spec.name}: metric {name!r} cannot be computed from one prediction a row; drop it")


def _class_indices(spec: TaskSpec, values: Numbers) -> Numbers:
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"{spec.name}: class indices are {values.dtype}, not integers")
    if values.min() < 0 or values.max() >= spec.outputs:
        raise ValueError(f"{spec.name}: class indices {values.min()}..{values.max()}, not in 0..{spec.outputs - 1}")
    return values.astype(np.int64)


def _is_constant(values: Numbers) -> bool:
    return bool((values == values[0]).all())


def _mean(primaries: Mapping[str, float], names: Sequence[str]) -> float:
    return math.fsum(primaries[name] for name in names) / len(names)
