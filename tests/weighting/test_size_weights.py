"""Weights from training sizes: each rule's formula on sizes worked out by hand, and what no rule can do."""

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.config.weighting import SizeRule
from mtl.weighting.size import size_weights

RTE, QNLI, MNLI = 2490, 104743, 392702


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("inverse", [1 / 100, 1 / 400, 1 / 10000]),
        ("inverse_max", [100.0, 25.0, 1.0]),
        ("inverse_min", [1.0, 0.25, 0.01]),
        ("proportional", [0.01, 0.04, 1.0]),
        ("proportional_log", [0.5, math.log(400) / math.log(10000), 1.0]),
        ("power", [0.1, 0.2, 1.0]),
        ("inverse_log", [1.0, math.log(100) / math.log(400), 0.5]),
        ("inverse_power", [1.0, 0.5, 0.1]),
    ],
)
def test_rules_by_hand(rule: SizeRule, expected: list[float]) -> None:
    assert size_weights([100, 400, 10000], rule, 0.5) == pytest.approx(expected, rel=1e-12)


def test_glue_sizes() -> None:
    assert size_weights([RTE, QNLI, MNLI], "inverse_min", 0.5) == pytest.approx([1.0, 0.02377247, 0.00634069], rel=1e-6)
    assert size_weights([RTE, QNLI, MNLI], "inverse_log", 0.5) == pytest.approx([1.0, 0.67649, 0.60711], rel=1e-4)
    assert size_weights([RTE, MNLI], "power", 0.75) == pytest.approx([0.0224702, 1.0], rel=1e-4)


@given(
    sizes=st.lists(st.integers(min_value=2, max_value=10**9), min_size=1, max_size=9),
    rule=st.sampled_from(get_args(SizeRule)),
)
def test_weights_are_positive_and_follow_the_order_of_sizes(sizes: list[int], rule: SizeRule) -> None:
    weights = size_weights(sizes, rule, 0.5)
    assert all(0 < weight < math.inf for weight in weights)
    assert all(weight <= 1 for weight in weights) or rule == "inverse_max"
    falling = rule.startswith("inverse")
    by_size = [weight for _, weight in sorted(zip(sizes, weights, strict=True))]
    assert by_size == sorted(by_size, reverse=falling)


@pytest.mark.parametrize("rule", ["proportional_log", "inverse_log"])
def test_the_logarithm_of_one_row_is_refused(rule: SizeRule) -> None:
    with pytest.raises(ValueError, match="one of 1 rows"):
        size_weights([1, 100], rule, 0.5)


def test_an_empty_task_is_refused() -> None:
    with pytest.raises(ValueError, match="one of 0 rows"):
        size_weights([0, 100], "inverse", 0.5)
