"""Metrics agree with scikit-learn and scipy on any input, and degenerate inputs have the stated score."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn_metrics

from mtl import metrics, tasks
from mtl.errors import ConfigError, DataError, NonFiniteError

COLA, MRPC, STSB, MNLI, RTE, WNLI = (
    tasks.get(f"glue/{name}") for name in ("cola", "mrpc", "stsb", "mnli", "rte", "wnli")
)

PAIRS = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=40
    )
)
# Multiples of 1/4, with many ties, so that no rounding hides a wrong rank.
SCORES = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 20)), min_size=3, max_size=40)


def _arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


@given(pairs=PAIRS)
def test_classification_metrics_equal_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    predictions, labels = _arrays(pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn remarks on classes that are absent
        assert metrics.accuracy(predictions, labels) == sklearn_metrics.accuracy_score(labels, predictions)
        assert metrics.f1(predictions, labels, 1) == pytest.approx(
            sklearn_metrics.f1_score(labels == 1, predictions == 1, zero_division=0), abs=1e-12
        )
        assert metrics.matthews(predictions, labels) == pytest.approx(
            sklearn_metrics.matthews_corrcoef(labels, predictions), abs=1e-12
        )


@given(pairs=SCORES)
def test_correlations_equal_scipy(pairs: list[tuple[int, int]]) -> None:
    predictions, labels = (values.astype(np.float32) / 4 for values in _arrays(pairs))
    assume(np.ptp(predictions) > 0)
    assume(np.ptp(labels) > 0)
    wide = predictions.astype(np.float64), labels.astype(np.float64)
    assert metrics.pearson(predictions, labels) == pytest.approx(stats.pearsonr(*wide).statistic, abs=1e-12)
    assert metrics.spearman(predictions, labels) == pytest.approx(stats.spearmanr(*wide).statistic, abs=1e-12)


def test_golden_values_computed_by_hand() -> None:
    # 2 found, 1 false alarm, 1 missed, 1 rightly left: F1 = 4/6, phi = (2*1 - 1*1) / sqrt(3*3*2*2).
    predictions, labels = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
    assert metrics.score(MRPC, predictions, labels).metrics == pytest.approx({"accuracy": 60.0, "f1": 200 / 3})
    assert metrics.score(COLA, predictions, labels).metrics["matthews"] == pytest.approx(100 / 6)
    # Squares of 1..4 against 1..4: same order, r = 25 / sqrt(5 * 129).
    scores = metrics.score(STSB, np.array([1.0, 4.0, 9.0, 16.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert scores.metrics == pytest.approx({"pearson": 2500 / math.sqrt(5 * 129), "spearman": 100.0})
    assert scores.flags == []


def test_three_class_matthews_golden_value() -> None:
    # Gorodkin's R_K for counts [[2,0,0],[0,1,1],[1,0,1]]: (4*6 - (3*2 + 1*2 + 2*2)) / sqrt(22 * 24).
    labels = np.array([0, 0, 1, 1, 2, 2])
    predictions = np.array([0, 0, 1, 2, 0, 2])
    assert metrics.matthews(predictions, labels) == pytest.approx(12 / math.sqrt(22 * 24), abs=1e-15)


def test_f1_is_of_the_positive_label() -> None:
    predictions, labels = np.array([0, 0, 1]), np.array([0, 1, 1])
    assert metrics.f1(predictions, labels, 1) == pytest.approx(2 / 3)
    turned = MRPC.model_copy(update={"positive_label": "not_equivalent"})
    assert metrics.score(turned, predictions, labels).metrics["f1"] == pytest.approx(200 / 3)
    assert metrics.score(turned, 1 - predictions, labels).metrics["f1"] == 0.0


def test_f1_without_a_positive_is_zero() -> None:
    nothing = np.zeros(4, dtype=np.int64)
    assert metrics.score(MRPC, nothing, nothing).metrics == {"accuracy": 100.0, "f1": 0.0}


@pytest.mark.parametrize("constant", [0.0, 2.6, -1.5])
def test_constant_scores_correlate_by_zero_and_are_flagged(constant: float) -> None:
    varied = np.array([1.0, 2.0, 4.0], dtype=np.float32)
    flat = np.full(3, constant, dtype=np.float32)
    for predictions, labels in ((flat, varied), (varied, flat)):
        scores = metrics.score(STSB, predictions, labels)
        assert scores.metrics == {"pearson": 0.0, "spearman": 0.0}
        assert scores.flags == [metrics.CONSTANT]


def test_constant_classes_have_matthews_zero_and_are_flagged() -> None:
    scores = metrics.score(COLA, np.ones(3, dtype=np.int64), np.array([1, 0, 1]))
    assert scores.metrics["matthews"] == 0.0
    assert scores.flags == [metrics.CONSTANT]
    assert metrics.score(RTE, np.ones(3, dtype=np.int64), np.array([1, 0, 1])).flags == []


def test_small_differences_in_float32_still_correlate() -> None:
    labels = np.arange(5, dtype=np.float32)
    predictions = np.float32(1000.0) + np.float32(2**-13) * labels
    assert metrics.score(STSB, predictions, labels).metrics["pearson"] == pytest.approx(100.0)


def test_empty_split_has_no_score() -> None:
    with pytest.raises(DataError, match="no rows"):
        metrics.score(RTE, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_predictions_that_are_not_finite_are_an_error(value: float) -> None:
    with pytest.raises(NonFiniteError, match="the first at 1"):
        metrics.score(STSB, np.array([1.0, value, 2.0]), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("predictions", "labels"),
    [
        (np.array([0, 1]), np.array([0, 1, 1])),
        (np.array([[0, 1]]), np.array([[0, 1]])),
        (np.array([0, 2]), np.array([0, 1])),
        (np.array([0, 1]), np.array([0, -1])),
        (np.array([0.2, 0.8]), np.array([0, 1])),
    ],
)
def test_what_no_caller_may_pass_is_refused(predictions: np.ndarray, labels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="glue/rte"):
        metrics.score(RTE, predictions, labels)


def test_a_metric_over_groups_of_rows_is_refused() -> None:
    spec = RTE.model_copy(update={"metrics": ("exact_match",)})
    with pytest.raises(ConfigError, match="exact_match"):
        metrics.score(spec, np.array([0, 1]), np.array([0, 1]))


def test_primary_is_the_mean_of_splits_and_metrics() -> None:
    assert metrics.primary(MRPC, {"dev": {"accuracy": 80.0, "f1": 90.0}, "test": {}}) == 85.0
    assert metrics.primary(COLA, {"dev": {"matthews": 40.0, "accuracy": 99.0}}) == 40.0
    matched = {"dev_matched": {"accuracy": 84.0}, "dev_mismatched": {"accuracy": 85.0}}
    assert metrics.primary(MNLI, matched) == 84.5
    with pytest.raises(DataError, match="dev_mismatched"):
        metrics.primary(MNLI, {"dev_matched": {"accuracy": 84.0}})


def test_suite_score_leaves_wnli_out_and_shows_both() -> None:
    primaries = {"glue/cola": 60.0, "glue/rte": 70.0, "glue/wnli": 56.0, "glue/mnli": 1.0}
    both = metrics.suite_score(primaries, [COLA, WNLI, RTE])
    assert both == metrics.SuiteScore(score=65.0, score_all=62.0, tasks=("glue/cola", "glue/rte"))
    assert metrics.suite_score(primaries, [COLA, RTE]).score_all is None
    assert metrics.suite_score(primaries, [WNLI]) == metrics.SuiteScore(score=None, score_all=56.0, tasks=())


def test_suite_score_refuses_holes_and_mixtures() -> None:
    with pytest.raises(DataError, match="glue/rte"):
        metrics.suite_score({"glue/cola": 60.0}, [COLA, RTE])
    other = RTE.model_copy(update={"name": "own/rte"})
    with pytest.raises(ValueError, match="one suite"):
        metrics.suite_score({"glue/cola": 60.0, "own/rte": 1.0}, [COLA, other])
