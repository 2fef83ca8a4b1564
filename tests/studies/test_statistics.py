import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mtl import metrics, tasks
from mtl.studies.statistics.detectable import minimum_detectable_difference, power
from mtl.studies.statistics.difference import ExampleDraw, difference
from mtl.studies.statistics.examples import example_variance
from mtl.studies.statistics.resampling import accuracy_covariance, example_covariance, resampled_scores
from mtl.studies.statistics.satterthwaite import combined
from mtl.studies.statistics.seeds import Component, seed_components

FIRST, SECOND = np.array([61.0, 63.0, 60.0, 64.0]), np.array([66.0, 67.0, 69.0])
FIVE = np.array([61.0, 63.0, 60.0, 64.0, 62.5])
# No example varies: what is left is the test over seeds alone.
NO_EXAMPLES: list[ExampleDraw] = []


def test_without_examples_it_is_welch() -> None:
    found = difference(FIRST, SECOND, NO_EXAMPLES, "Welch")
    expected = stats.ttest_ind(SECOND, FIRST, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.degrees == pytest.approx(expected.df, rel=1e-12)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-12)


def test_without_examples_it_is_the_paired_test() -> None:
    found = difference(FIRST[:3], SECOND, NO_EXAMPLES, "paired")
    expected = stats.ttest_rel(SECOND, FIRST[:3])
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.degrees == 2
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-12)


def test_satterthwaite_by_hand() -> None:
    total = combined([Component(np.array(2.0), np.array(4.0)), Component(np.array(1.0), np.array(99.0))])
    assert total.variance == 3.0
    assert total.degrees == pytest.approx(9 / (4 / 4 + 1 / 99), rel=1e-12)


def test_seeds_and_examples_are_summed_by_hand() -> None:
    covariance = np.array([[9.0, 4.0, 1.0, 0.0], [4.0, 9.0, 0.0, 1.0], [1.0, 0.0, 9.0, 5.0], [0.0, 1.0, 5.0, 9.0]])
    first, second = np.array([60.0, 62.0]), np.array([65.0, 69.0])
    found = difference(first, second, [ExampleDraw(covariance, 101)], "Welch")
    # Within arms 4 and 5; between arms the mean of 1, 0, 0, 1, twice.
    assert example_variance(covariance, 2, "Welch") == pytest.approx(4 + 5 - 2 * 0.5)
    seeds = (2 / 2, 8 / 2)
    assert found.standard_error == pytest.approx(math.sqrt(sum(seeds) + 8))
    assert found.degrees == pytest.approx(13**2 / (1 + 16 + 64 / 100))
    # Paired, run 1 of either arm is one seed, and its own covariance does not count.
    assert example_variance(covariance, 2, "paired") == pytest.approx(4 + 5 - 2 * 0)


def test_accuracy_is_the_variance_of_the_mean_difference_where_seeds_agree() -> None:
    random = np.random.default_rng(3)
    one, other = (random.random((2, 400)) < 0.7).astype(float)
    right = np.stack([one, one, one, other, other, other])
    expected = np.var(100 * (other - one), ddof=1) / 400
    assert example_variance(accuracy_covariance(right), 3, "Welch") == pytest.approx(expected, rel=1e-12)


def test_what_seeds_disagree_about_is_not_counted_twice() -> None:
    random = np.random.default_rng(4)
    right = (random.random((200, 10, 300)) < 0.7).astype(float)
    found = example_variance(accuracy_covariance(right), 5, "Welch")
    whole = np.var(100 * (right[:, 5:].mean(axis=1) - right[:, :5].mean(axis=1)), axis=-1, ddof=1) / 300
    assert found.mean() < 0.15 * whole.mean()


def test_one_run_of_an_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="two runs"):
        seed_components(FIRST[:1], SECOND, "Welch")
    with pytest.raises(ValueError, match="two runs"):
        example_variance(np.eye(3), 1, "Welch")


def test_where_nothing_varies_nothing_is_told() -> None:
    found = difference(np.array([50.0, 50.0]), np.array([50.0, 50.0]), [], "Welch")
    assert np.isnan(found.p_value)
    assert np.isnan(found.low)


@settings(deadline=None)
@given(st.floats(0.2, 5), st.floats(2, 200), st.sampled_from([0.05, 0.01, 0.05 / 40]))
def test_the_minimum_detectable_difference_has_a_power_of_80_percent(
    error: float, degrees: float, level: float
) -> None:
    found = minimum_detectable_difference(np.array(error), np.array(degrees), level)
    assert power(found, np.array(error), np.array(degrees), level) == pytest.approx(0.8, abs=1e-6)
    # Sum of the two quantiles: the textbook approximation.
    assert found > error * stats.t.ppf(1 - level / 2, degrees)


def test_detectable_with_many_degrees_of_freedom_is_2_8_standard_errors() -> None:
    found = minimum_detectable_difference(np.array(1.0), np.array(1e5), 0.05)
    assert found == pytest.approx(stats.norm.ppf(0.975) + stats.norm.ppf(0.8), rel=1e-3)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(-20, 20))
def test_exchanging_the_arms_turns_the_difference_round(seed: int, shift: float) -> None:
    random = np.random.default_rng(seed)
    first, second = random.normal(size=(7, 3)), random.normal(size=(7, 4)) + shift
    covariance = accuracy_covariance((random.random((7, 7, 50)) < 0.6).astype(float))
    swapped = np.roll(np.roll(covariance, 4, axis=-1), 4, axis=-2)
    one = difference(first, second, [ExampleDraw(covariance, 50)], "Welch")
    other = difference(second, first, [ExampleDraw(swapped, 50)], "Welch")
    np.testing.assert_allclose(one.difference, -other.difference)
    np.testing.assert_allclose(one.p_value, other.p_value)
    np.testing.assert_allclose(one.low, -other.high)
    assert (one.degrees >= 2).all()


def by_hand(name: str, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Bootstrap scores as computed at once, and each by copying the examples that were drawn."""
    spec = tasks.get(f"glue/{name}")
    random = np.random.default_rng(0)
    if spec.kind == "regression":
        labels = np.round(random.uniform(0, 5, 40))
        predictions = labels + random.normal(size=(3, 40))
        predictions[1] = np.round(predictions[1])
        predictions[2] = 2.5
    else:
        labels = random.integers(0, 2, size=40)
        predictions = np.where(random.random((3, 40)) < 0.7, labels, 1 - labels)
    found = resampled_scores(spec, predictions, labels, np.random.default_rng(5), resamples)
    again, expected = np.random.default_rng(5), []
    for _ in range(resamples):
        rows = again.integers(40, size=40)
        scored = [metrics.score(spec, each[rows], labels[rows]).metrics for each in predictions]
        expected.append([np.mean([values[metric] for metric in spec.primary]) for values in scored])
    return found, np.array(expected)


@pytest.mark.parametrize("name", ["cola", "mrpc", "stsb"])
def test_resampled_scores_are_those_of_the_examples_drawn(name: str) -> None:
    found, expected = by_hand(name, 25)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_another_run_changes_nothing_for_the_others() -> None:
    spec = tasks.get("glue/cola")
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, size=90)
    predictions = np.where(random.random((5, 90)) < 0.8, labels, 1 - labels)
    whole = example_covariance(spec, predictions, labels, np.random.default_rng(2))
    part = example_covariance(spec, predictions[:3], labels, np.random.default_rng(2))
    np.testing.assert_allclose(whole[:3, :3], part, rtol=1e-9)


def test_the_bootstrap_agrees_with_what_is_known_of_accuracy() -> None:
    spec = tasks.get("glue/rte").model_copy(update={"metrics": ("matthews", "accuracy"), "primary": ("matthews",)})
    accuracy = spec.model_copy(update={"primary": ("accuracy", "accuracy")})
    random = np.random.default_rng(7)
    labels = random.integers(0, 2, size=300)
    predictions = np.where(random.random((2, 300)) < 0.8, labels, 1 - labels)
    resampled = example_covariance(accuracy, predictions, labels, random, resamples=4000)
    exact = accuracy_covariance((predictions == labels).astype(float))
    np.testing.assert_allclose(np.diag(resampled), np.diag(exact), rtol=0.08)
