"""The machine's peak: the best of several products, each by the clock."""

from collections.abc import Iterator

import pytest
import torch
from tiny_bench import counting_clock

from mtl.bench.peak import measure_peak, product_operations


def test_a_product_takes_two_operations_for_each_of_size_cubed() -> None:
    assert product_operations(100) == 2e6


def test_the_best_product_counts() -> None:
    # By this clock each product takes a hundredth of a second, whatever its size.
    found = measure_peak(torch.device("cpu"), "fp32", sizes=(8, 16), clock=counting_clock(0.01))
    assert found == pytest.approx(2.0 * 16**3 / 0.01)


def test_a_size_that_would_take_long_is_left_out() -> None:
    # One second for the first size makes eight of the second.
    assert measure_peak(torch.device("cpu"), "fp32", sizes=(8, 16), clock=counting_clock()) == 2.0 * 8**3


def test_the_fastest_repeat_counts() -> None:
    readings: Iterator[float] = iter([0.0, 4.0, 4.0, 6.0, 6.0, 7.0, 7.0, 10.0, 10.0, 20.0])
    found = measure_peak(torch.device("cpu"), "bf16", sizes=(8,), clock=lambda: next(readings))
    assert found == 2.0 * 8**3
    assert list(readings) == []


def test_no_global_random_generator_is_used() -> None:
    before = torch.random.get_rng_state()
    measure_peak(torch.device("cpu"), "fp32", sizes=(8,))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_twice_as_fast_is_twice_the_rate(seconds: float) -> None:
    assert measure_peak(torch.device("cpu"), "fp32", sizes=(8,), clock=counting_clock(seconds)) == 1024 / seconds
