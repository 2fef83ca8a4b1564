"""Rates, medians, utilisation and loss curves, from numbers given."""

import pytest
from tiny_bench import measure

from mtl.bench.figures import by_tenths, in_turn, mean_curve, tokens_per_second, utilisation


def test_utilisation_is_useful_operations_over_the_peak() -> None:
    # 3e12 operations in 6 s are 0.5 TFLOP/s, a quarter of 2 TFLOP/s.
    assert utilisation(3e12, 6.0, 2e12) == 0.25


def test_ratios_are_of_real_tokens_turn_by_turn_and_the_median_is_of_ratios() -> None:
    own, peers = [measure(1.0), measure(2.0)], [measure(4.0), measure(4.0, tokens=3000)]
    rates = [[tokens_per_second(each) for each in side] for side in (own, peers)]
    assert rates[0] == [1000.0, 500.0]
    found = in_turn(*rates)
    assert found.ratios == (4.0, pytest.approx(2 / 3))
    assert found.ratio == pytest.approx(7 / 3)
    with pytest.raises(ValueError, match="shorter"):
        in_turn(rates[0], rates[1][:1])


def test_tenths_are_as_equal_as_can_be_and_cover_every_update_once() -> None:
    assert by_tenths([float(value) for value in range(100)]) == [10.0 * part + 4.5 for part in range(10)]
    assert by_tenths([3.0, 1.0]) == [3.0, 1.0]
    uneven = [float(value) for value in range(23)]
    assert len(by_tenths(uneven)) == 10
    assert by_tenths(uneven)[0] == pytest.approx(0.5)
    assert by_tenths(uneven)[-1] == pytest.approx(21.5)


def test_curves_of_several_trainings_are_averaged() -> None:
    assert mean_curve([measure(1.0, losses=[4.0, 2.0]), measure(1.0, losses=[2.0, 1.0])]) == [3.0, 1.5]
