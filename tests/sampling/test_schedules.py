"""Paths of the sampling exponent: exact at both ends, golden in the middle, no division by zero."""

import numpy as np
import pytest

from mtl.config.sampling import ConstantSchedule, CosineSchedule, LinearSchedule, PalsSchedule, ScheduleSettings
from mtl.sampling.probabilities import power_probabilities
from mtl.sampling.schedules import exponent_at, pals_exponent

PALS_SIZES = [8551, 67349, 3668, 5749, 363846, 392702, 104743, 2490]
PALS_EPOCH_13 = [0.033068, 0.114076, 0.019900, 0.026059, 0.313866, 0.328573, 0.148686, 0.015773]


def test_pals_by_epoch() -> None:
    assert pals_exponent(1, 25) == 1.0
    assert pals_exponent(13, 25) == pytest.approx(0.6, abs=1e-15)
    assert pals_exponent(25, 25) == pytest.approx(0.2, abs=1e-15)
    np.testing.assert_allclose(power_probabilities(PALS_SIZES, pals_exponent(13, 25)), PALS_EPOCH_13, atol=6e-7)


def test_one_pals_epoch_does_not_divide_by_zero() -> None:
    assert pals_exponent(1, 1) == 1.0
    assert exponent_at(PalsSchedule(epochs=1), 1.0, 7, 10) == 1.0


def test_pals_falls_in_equal_parts_of_the_training() -> None:
    values = [exponent_at(PalsSchedule(epochs=5), 1.0, step, 20) for step in range(20)]
    assert values == pytest.approx(np.repeat([1.0, 0.8, 0.6, 0.4, 0.2], 4))
    uneven = [exponent_at(PalsSchedule(epochs=3), 1.0, step, 10) for step in range(10)]
    assert sorted(set(uneven)) == pytest.approx([0.2, 0.6, 1.0])
    assert uneven == sorted(uneven, reverse=True)


@pytest.mark.parametrize("schedule", [LinearSchedule(end=0.2), CosineSchedule(end=0.2)])
def test_both_ends_and_the_middle(schedule: ScheduleSettings) -> None:
    assert exponent_at(schedule, 1.0, 0, 101) == 1.0
    assert exponent_at(schedule, 1.0, 50, 101) == pytest.approx(0.6)
    assert exponent_at(schedule, 1.0, 100, 101) == pytest.approx(0.2)
    assert exponent_at(schedule, 1.0, 0, 1) == 1.0


def test_linear_and_cosine_differ_between() -> None:
    assert exponent_at(LinearSchedule(end=0.0), 1.0, 25, 101) == pytest.approx(0.75)
    assert exponent_at(CosineSchedule(end=0.0), 1.0, 25, 101) == pytest.approx(0.8535533905932737)


def test_constant() -> None:
    assert {exponent_at(ConstantSchedule(), 0.3, step, 10) for step in range(10)} == {0.3}


def test_pals_scales_the_samplers_own_exponent() -> None:
    assert exponent_at(PalsSchedule(epochs=25), 1.0, 0, 25) == 1.0
    assert exponent_at(PalsSchedule(epochs=25), 1.0, 24, 25) == pytest.approx(0.2)
    assert exponent_at(PalsSchedule(epochs=25), 0.5, 24, 25) == pytest.approx(0.1)
