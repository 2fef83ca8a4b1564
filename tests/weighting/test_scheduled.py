"""Weights that move: exact at both ends, the shape between them, and no replay needed."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mtl.weighting.scheduled import ScheduledWeights, Shape, path


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ("linear", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("cosine", [0.0, 0.14644660940672624, 0.5, 0.8535533905932737, 1.0]),
        ("step", [0.0, 0.0, 1.0, 1.0, 1.0]),
    ],
)
def test_shapes(shape: Shape, values: list[float]) -> None:
    assert [path(shape, quarter / 4, 0.5) for quarter in range(5)] == pytest.approx(values, abs=1e-15)


@pytest.mark.parametrize("shape", ["linear", "cosine", "step"])
def test_first_and_last_update_have_exactly_the_given_weights(shape: Shape) -> None:
    start, end = [0.1, 3.0, 0.0], [0.7, 0.0, 0.3]
    weighting = ScheduledWeights(start, end, 101, shape=shape, step_at=0.5)
    assert torch.equal(weighting.weights_at(0), torch.tensor(start))
    assert torch.equal(weighting.weights_at(100), torch.tensor(end))


def test_a_step_comes_at_its_share_of_the_training() -> None:
    weighting = ScheduledWeights([1.0], [2.0], 11, shape="step", step_at=0.3)
    assert [float(weighting.weights_at(step)) for step in range(11)] == [1.0] * 3 + [2.0] * 8


def test_a_single_update_has_the_start() -> None:
    assert float(ScheduledWeights([1.0], [2.0], 1, shape="linear", step_at=0.5).weights_at(0)) == 1.0


@given(
    start=st.floats(min_value=0, max_value=100),
    end=st.floats(min_value=0, max_value=100),
    shape=st.sampled_from(["linear", "cosine", "step"]),
    total=st.integers(min_value=2, max_value=50),
)
def test_weights_move_one_way_and_stay_between_the_ends(start: float, end: float, shape: Shape, total: int) -> None:
    weighting = ScheduledWeights([start], [end], total, shape=shape, step_at=0.5)
    values = [float(weighting.weights_at(step)) for step in range(total)]
    # One rounding to float32, which may underflow, of a value that is monotone up to a rounding in float64.
    tolerance = 1e-6 * max(start, end) + 1e-37
    assert min(start, end) - tolerance <= min(values)
    assert max(values) <= max(start, end) + tolerance
    sign = 1 if end >= start else -1
    assert all(sign * (later - earlier) >= -tolerance for earlier, later in pairwise(values))
