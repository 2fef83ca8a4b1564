"""How the scores of runs would move, together, if other examples had been drawn.

N examples, R runs scored on them, B resamples, C classes. Scores are times 100.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.errors import ConfigError
from mtl.studies.statistics.confusion import of_confusion
from mtl.tasks.spec import MetricName, TaskSpec

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

RESAMPLES = 1000
_CHUNK_ELEMENTS = 1 << 22


def example_covariance(
    spec: TaskSpec, predictions: Numbers, labels: Numbers, random: np.random.Generator, *, resamples: int = RESAMPLES
) -> Floats:
    """The covariance (R, R) of the runs' primary scores on one split under the draw of its examples.

    ``predictions`` (R, N) and ``labels`` (N,) are class indices or scores. Where the primary score is accuracy alone it
    is the covariance of per-example scores over N; else that of B bootstrap scores, all runs on the same resample of
    examples (Efron 1979, "Bootstrap methods: another look at the jackknife"). A run's variance and its covariance
    with another do not depend on which further runs are given, but for rounding.
    """
    if spec.primary == ("accuracy",):
        return accuracy_covariance((predictions == labels).astype(np.float64))
    scores = resampled_scores(spec, predictions, labels, random, resamples)
    return np.atleast_2d(np.cov(scores, rowvar=False))


def accuracy_covariance(right: Floats) -> Floats:
    """The covariance (..., R, R) of accuracies, times 100 each, from whether each example was right (..., R, N)."""
    examples = right.shape[-1]
    centred = 100.0 * (right - right.mean(axis=-1, keepdims=True))
    return np.asarray(centred @ np.swapaxes(centred, -1, -2) / (examples - 1) / examples)


def resampled_scores(
    spec: TaskSpec, predictions: Numbers, labels: Numbers, random: np.random.Generator, resamples: int
) -> Floats:
    """The primary score of each run on each of B resamples of the examples, (B, R)."""
    examples = len(labels)
    # Only ranks need an element for each run; all other metrics are matrix products.
    chunk = max(1, _CHUNK_ELEMENTS // (predictions.size if "spearman" in spec.primary else examples))
    found = []
    for start in range(0, resamples, chunk):
        # One resample at a time, so that what is drawn does not depend on the size of the chunks.
        weights = np.stack(
            [
                np.bincount(random.integers(examples, size=examples), minlength=examples)
                for _ in range(min(chunk, resamples - start))
            ]
        ).astype(np.float64)
        found.append(100.0 * np.mean(_weighted(spec, predictions, labels, weights), axis=0))
    return np.concatenate(found)


def _weighted(spec: TaskSpec, predictions: Numbers, labels: Numbers, weights_BN: Floats) -> list[Floats]:
    """Each primary metric (B, R) where example i counts as often as the weights say."""
    if spec.kind == "classification":
        counts = _confusions(predictions, labels, weights_BN, spec.outputs)
        return [of_confusion(name, spec, counts) for name in spec.primary]
    return [_correlation(name, spec)(predictions, labels, weights_BN) for name in spec.primary]


def _correlation(name: MetricName, spec: TaskSpec) -> Callable[[Numbers, Numbers, Floats], Floats]:
    if name == "pearson":
        return _pearson
    if name == "spearman":
        return _spearman
    raise ConfigError(f"{spec.name}: there is no paired test for metric {name!r}; leave the task out")


def _confusions(predictions_RN: Numbers, labels_N: Numbers, weights_BN: Floats, classes: int) -> Floats:
    cells = labels_N * classes + predictions_RN
    one_hot = (cells[:, None, :] == np.arange(classes**2)[:, None]).astype(np.float64)
    counts = weights_BN @ one_hot.reshape(-1, len(labels_N)).T
    return np.asarray(counts.reshape(len(weights_BN), len(predictions_RN), classes, classes))


def _pearson(values_RN: Numbers, labels_N: Numbers, weights_BN: Floats) -> Floats:
    rows = weights_BN.sum(axis=1, keepdims=True)
    # Centred first, so that no digits are lost where the values are far from 0.
    values, target = values_RN.astype(np.float64), labels_N.astype(np.float64)
    values, target = values - values.mean(axis=1, keepdims=True), target - target.mean()
    mean, mean_target = weights_BN @ values.T / rows, (weights_BN @ target)[:, None] / rows
    covariance = weights_BN @ (values * target).T / rows - mean * mean_target
    variance = weights_BN @ (values**2).T / rows - mean**2
    variance_target = (weights_BN @ target**2)[:, None] / rows - mean_target**2
    return _ratio(covariance, variance * variance_target, (values**2).mean(axis=1) * (target**2).mean())


def _spearman(values_RN: Numbers, labels_N: Numbers, weights_BN: Floats) -> Floats:
    """Ranks are taken anew in each resample, those of equal values being their mean."""
    order_N = np.argsort(labels_N, kind="stable")
    target_BN = np.empty_like(weights_BN)
    target_BN[:, order_N] = _centred_ranks(labels_N[order_N][None], weights_BN[:, order_N][:, None])[:, 0]
    order_RN = np.argsort(values_RN, axis=1, kind="stable")
    sorted_weights = weights_BN[:, order_RN]
    ranks = _centred_ranks(np.take_along_axis(values_RN, order_RN, axis=1), sorted_weights)
    covariance = np.einsum("brn,brn->br", ranks, (weights_BN * target_BN)[:, order_RN])
    variance = np.einsum("brn,brn,brn->br", ranks, ranks, sorted_weights)
    variance_target = np.einsum("bn,bn,bn->b", target_BN, target_BN, weights_BN)[:, None]
    return _ratio(covariance, variance * variance_target, float(len(labels_N)) ** 2)


def _centred_ranks(sorted_RN: Numbers, weights_BRN: Floats) -> Floats:
    """Ranks (B, R, N), less their mean, of sorted values each of which stands there as often as its weight says."""
    until = np.cumsum(weights_BRN, axis=-1)
    middle = (weights_BRN.shape[-1]) / 2
    new = np.concatenate([np.ones((len(sorted_RN), 1), bool), sorted_RN[:, 1:] != sorted_RN[:, :-1]], axis=1)
    if new.all():
        return np.asarray(until - weights_BRN / 2 - middle)
    places = np.arange(sorted_RN.shape[1])
    first = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    last_of_group = np.concatenate([new[:, 1:], np.ones((len(new), 1), bool)], axis=1)
    last = np.minimum.accumulate(np.where(last_of_group, places, places[-1])[:, ::-1], axis=1)[:, ::-1]
    before = np.concatenate([np.zeros_like(until[..., :1]), until[..., :-1]], axis=-1)
    begin = np.take_along_axis(before, np.broadcast_to(first, until.shape), axis=-1)
    end = np.take_along_axis(until, np.broadcast_to(last, until.shape), axis=-1)
    return np.asarray((begin + end) / 2 - middle)


def _ratio(covariance: Floats, spread: Floats, scale: Floats | float) -> Floats:
    """A correlation; 0 where one side is constant but for rounding, measured by ``scale``."""
    constant = spread <= 1e-20 * scale
    return np.where(constant, 0.0, covariance / np.sqrt(np.where(constant, 1.0, spread)))
