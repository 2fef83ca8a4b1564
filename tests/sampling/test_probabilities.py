"""Task shares: golden values of the literature, limits of the temperature, and numbers of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.sampling.probabilities import power_probabilities, task_probabilities

# Order: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte.
GLUE = [8551, 67349, 3668, 5749, 363846, 392702, 104743, 2490]
T1 = [0.009010, 0.070961, 0.003865, 0.006057, 0.383360, 0.413763, 0.110361, 0.002624]
T2 = [0.044207, 0.124066, 0.028953, 0.036248, 0.288366, 0.299583, 0.154721, 0.023855]
T5 = [0.091092, 0.137639, 0.076906, 0.084138, 0.192868, 0.195834, 0.150349, 0.071173]
POWER_3_4 = [0.020739, 0.097502, 0.010992, 0.015398, 0.345504, 0.365858, 0.135787, 0.008221]
CAP_T1 = [0.018806, 0.148119, 0.008067, 0.012644, 0.288264, 0.288264, 0.230359, 0.005476]
CAP_T2 = [0.058305, 0.163631, 0.038187, 0.047807, 0.228273, 0.228273, 0.204062, 0.031463]

sizes_of_any_scale = st.lists(st.floats(min_value=1, max_value=1e15), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("temperature", "cap", "golden"),
    [(1.0, None, T1), (2.0, None, T2), (5.0, None, T5), (1.0, 2**17, CAP_T1), (2.0, 2**17, CAP_T2)],
)
def test_golden_temperatures(temperature: float, cap: float | None, golden: list[float]) -> None:
    np.testing.assert_allclose(task_probabilities(GLUE, temperature, cap), golden, atol=6e-7)


def test_golden_power() -> None:
    np.testing.assert_allclose(power_probabilities(GLUE, 0.75), POWER_3_4, atol=6e-7)


def test_infinite_temperature_is_uniform_and_zero_temperature_takes_the_largest() -> None:
    np.testing.assert_allclose(task_probabilities(GLUE, 1e12), 1 / 8, rtol=1e-9)
    np.testing.assert_array_equal(power_probabilities(GLUE, 0.0), np.full(8, 1 / 8))
    np.testing.assert_allclose(task_probabilities(GLUE, 1e-4), np.eye(8)[5], atol=1e-12)


def test_the_cap_comes_before_the_root() -> None:
    np.testing.assert_allclose(task_probabilities([16.0, 10000.0], 2.0, cap=64.0), [1 / 3, 2 / 3], rtol=1e-14)


@given(sizes=sizes_of_any_scale, exponent=st.floats(min_value=0, max_value=50))
def test_shares_sum_to_one_and_follow_the_order_of_sizes(sizes: list[float], exponent: float) -> None:
    shares = power_probabilities(sizes, exponent)
    assert shares.shape == (len(sizes),)
    assert np.isfinite(shares).all()
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(shares[np.argsort(sizes)]) >= -1e-15).all()


@given(sizes=sizes_of_any_scale, temperature=st.floats(min_value=1, max_value=100), factor=st.sampled_from([0.5, 4.0]))
def test_only_proportions_matter(sizes: list[float], temperature: float, factor: float) -> None:
    scaled = [size * factor for size in sizes]
    np.testing.assert_array_equal(task_probabilities(scaled, temperature), task_probabilities(sizes, temperature))


def test_huge_sizes_stay_finite() -> None:
    np.testing.assert_allclose(power_probabilities([1e300, 1e300, 1.0], 3.0), [0.5, 0.5, 0.0], atol=1e-15)


@pytest.mark.parametrize("sizes", [[], [0, 1], [-1, 2], [float("nan"), 1], [float("inf"), 1], [[1, 2]]])
def test_impossible_sizes_are_refused(sizes: list[float]) -> None:
    with pytest.raises(ValueError, match="positive numbers"):
        power_probabilities(sizes, 1.0)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_impossible_temperatures_are_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature must be positive"):
        task_probabilities([1, 2], temperature)
