from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mtl import metrics, tasks
from mtl.errors import ConfigError
from mtl.studies.paired_tests import Pair, holm, mcnemar, paired_test, randomisation
from mtl.tasks.spec import TaskSpec

COLA, MRPC, STSB, RTE, MNLI = (tasks.get(f"glue/{name}") for name in ("cola", "mrpc", "stsb", "rte", "mnli"))


def primary(spec: TaskSpec, predictions: np.ndarray, labels: np.ndarray) -> float:
    found = metrics.score(spec, predictions, labels).metrics
    return float(np.mean([found[name] for name in spec.primary])) / 100


def swaps_by_hand(spec: TaskSpec, pair: Pair) -> float:
    """The p-value of the randomisation over all 2^N permutations, each carried out."""
    count, rows = 0, len(pair.labels)
    observed = abs(primary(spec, pair.first, pair.labels) - primary(spec, pair.second, pair.labels))
    for bits in range(2**rows):
        swapped = np.array([bits >> row & 1 for row in range(rows)], dtype=bool)
        one, other = np.where(swapped, pair.second, pair.first), np.where(swapped, pair.first, pair.second)
        count += abs(primary(spec, one, pair.labels) - primary(spec, other, pair.labels)) >= observed - 1e-9
    return count / 2**rows


def a_pair(spec: TaskSpec, rows: int, seed: int) -> Pair:
    random = np.random.default_rng(seed)
    if spec.kind == "regression":
        labels, first, second = random.normal(size=(3, rows)).astype(np.float32)
        return Pair(labels + first, labels + 2 * second, labels)
    labels, first, second = random.integers(0, spec.outputs, size=(3, rows))
    return Pair(np.where(random.random(rows) < 0.5, labels, first), second, labels)


@pytest.mark.parametrize(
    ("only_first", "only_second", "expected"),
    [(0, 0, 1.0), (5, 5, 1.0), (8, 2, 0.109375), (2, 8, 0.109375), (10, 0, 2 / 1024), (1, 0, 1.0), (3, 12, 0.03515625)],
)
def test_mcnemar_is_the_sign_test_of_discordant_examples(only_first: int, only_second: int, expected: float) -> None:
    assert mcnemar(only_first, only_second) == pytest.approx(expected, rel=1e-12)


def test_accuracy_is_tested_by_mcnemar_over_all_splits_together() -> None:
    labels = np.zeros(15, dtype=np.int64)
    first, second = labels.copy(), labels.copy()
    first[:3] = 1
    second[3:15] = 1
    whole = paired_test(RTE, [Pair(first, second, labels)])
    assert (whole.test, whole.p_value) == ("McNemar, exact", pytest.approx(0.03515625))
    parts = [Pair(first[:7], second[:7], labels[:7]), Pair(first[7:], second[7:], labels[7:])]
    assert paired_test(MNLI, parts) == whole


@pytest.mark.parametrize("spec", [COLA, MRPC, STSB], ids=lambda spec: spec.name)
def test_other_scores_are_tested_by_permutations(spec: TaskSpec) -> None:
    pair = a_pair(spec, 9, seed=4)
    found = paired_test(spec, [pair])
    assert found.test == "approximate randomisation"
    assert found.p_value == pytest.approx(swaps_by_hand(spec, pair), abs=0.02)
    assert paired_test(spec, [pair]) == found
    swapped = randomisation(spec, [Pair(pair.second, pair.first, pair.labels)])
    assert swapped == pytest.approx(found.p_value, abs=0.02)


@pytest.mark.parametrize("spec", [COLA, MRPC, STSB, RTE], ids=lambda spec: spec.name)
def test_equal_predictions_differ_by_nothing(spec: TaskSpec) -> None:
    pair = a_pair(spec, 50, seed=1)
    assert paired_test(spec, [Pair(pair.first, pair.first, pair.labels)]).p_value == 1.0


@pytest.mark.parametrize("spec", [COLA, MRPC, STSB, RTE], ids=lambda spec: spec.name)
def test_right_against_random_differs(spec: TaskSpec) -> None:
    pair = a_pair(spec, 60, seed=2)
    assert paired_test(spec, [Pair(pair.labels, pair.second, pair.labels)]).p_value < 0.001


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 30), which=st.sampled_from(["cola", "mrpc", "stsb"]))
def test_the_difference_that_is_tested_is_that_of_the_scores(seed: int, rows: int, which: str) -> None:
    from mtl.studies import paired_tests

    spec = tasks.get(f"glue/{which}")
    pair = a_pair(spec, rows, seed)
    difference = paired_tests._differences(spec, pair, 3, np.random.default_rng(0))[0]
    expected = primary(spec, pair.first, pair.labels) - primary(spec, pair.second, pair.labels)
    assert difference == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("spec", "rows"), [(COLA, 80), (MRPC, 80), (STSB, 40)], ids=["cola", "mrpc", "stsb"])
def test_models_that_are_alike_are_told_apart_about_as_often_as_promised(spec: TaskSpec, rows: int) -> None:
    """Both predictions of an example come from one distribution, so each p-value below .05 is a false alarm."""
    random, trials = np.random.default_rng(5), 300
    p_values = []
    for _ in range(trials):
        if spec.kind == "regression":
            labels = random.normal(size=rows)
            pair = Pair(labels + random.normal(size=rows), labels + random.normal(size=rows), labels)
        else:
            labels = (random.random(rows) < 0.6).astype(np.int64)
            wrong = random.random((2, rows)) < 0.25
            pair = Pair(labels ^ wrong[0], labels ^ wrong[1], labels)
        p_values.append(randomisation(spec, [pair], permutations=199))
    alarms = sum(p <= 0.05 for p in p_values)
    # Three standard errors around 5% of the trials.
    assert 0.05 * trials - 12 <= alarms <= 0.05 * trials + 12


def test_mcnemar_keeps_its_level() -> None:
    random = np.random.default_rng(6)
    alarms = 0
    for _ in range(500):
        first, second = random.random((2, 200)) < 0.8
        alarms += mcnemar(int((first & ~second).sum()), int((second & ~first).sum())) <= 0.05
    assert alarms <= 0.05 * 500 + 15


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [([], []), ([0.03], [0.03]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.5, 0.6], [1.0, 1.0])],
)
def test_holm(p_values: Sequence[float], expected: Sequence[float]) -> None:
    assert holm(p_values) == pytest.approx(expected)


def test_constant_predictions_have_no_correlation() -> None:
    labels = np.arange(20, dtype=np.float64)
    constant = np.full(20, 2.0)
    assert randomisation(STSB, [Pair(constant, constant + 1, labels)]) == pytest.approx(1.0, abs=0.5)
    assert paired_test(STSB, [Pair(constant, constant, labels)]).p_value == 1.0


def test_spearman_has_mean_ranks() -> None:
    from mtl.studies.paired_tests import _spearman

    values, labels = np.array([1.0, 1.0, 3.0, 2.0]), np.array([1.0, 2.0, 2.0, 4.0])
    assert _spearman(values[None], labels)[0] == pytest.approx(stats.spearmanr(values, labels).statistic)


def test_a_metric_without_a_test_is_refused() -> None:
    odd = COLA.model_copy(update={"metrics": ("exact_match",), "primary": ("exact_match",)})
    with pytest.raises(ConfigError, match="no paired test for metric 'exact_match'"):
        paired_test(odd, [a_pair(COLA, 5, seed=1)])
