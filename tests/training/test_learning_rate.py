"""The learning rate of every update: the closed form, and the schedules of transformers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

from mtl.config.training import OptimizerSettings
from mtl.training.schedule import learning_rate_factor
from tests.training.toy_training import toy_training


def factors(total: int, **settings: object) -> list[float]:
    chosen = OptimizerSettings.model_validate(settings)
    return [learning_rate_factor(step, total, chosen) for step in range(total)]


def test_table_of_a_line() -> None:
    expected = [0.0, 0.5, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]
    assert factors(10, warmup=0.2, decay="linear") == pytest.approx(expected)


def test_table_of_a_cosine() -> None:
    expected = [0.0, 1.0, *(0.5 * (1 + math.cos(math.pi * k / 4)) for k in (1, 2, 3))]
    assert factors(5, warmup=0.2, decay="cosine") == pytest.approx(expected)


def test_a_single_update_is_not_wasted_on_warming_up() -> None:
    assert factors(1, warmup=0.5, decay="linear") == [1.0]


def test_table_of_a_constant() -> None:
    assert factors(5, warmup=0.4, decay="constant") == pytest.approx([0.0, 0.5, 1.0, 1.0, 1.0])
    assert factors(3, warmup=0.0, decay="constant") == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant"])
@pytest.mark.parametrize(("total", "warmup"), [(1, 0.0), (7, 0.3), (50, 0.1), (50, 0.0), (33, 0.99)])
def test_equals_the_schedules_of_transformers_at_every_update(decay: str, total: int, warmup: float) -> None:
    adamw = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    warm = math.ceil(warmup * total)
    schedule = {
        "linear": lambda: get_linear_schedule_with_warmup(adamw, warm, total),
        "cosine": lambda: get_cosine_schedule_with_warmup(adamw, warm, total),
        "constant": lambda: get_constant_schedule_with_warmup(adamw, warm),
    }[decay]()
    expected = []
    for _ in range(total):
        expected.append(schedule.get_last_lr()[0])
        adamw.step()
        schedule.step()
    assert factors(total, warmup=warmup, decay=decay) == pytest.approx(expected, abs=1e-12)


@given(
    total=st.integers(1, 300),
    warmup=st.floats(0.0, 0.99),
    decay=st.sampled_from(["linear", "cosine", "constant"]),
)
def test_rises_once_then_never_again_between_zero_and_one(total: int, warmup: float, decay: str) -> None:
    table = factors(total, warmup=warmup, decay=decay)
    assert all(0.0 <= factor <= 1.0 for factor in table)
    warm = math.ceil(warmup * total)
    assert table[:warm] == sorted(table[:warm])
    assert table[warm:] == sorted(table[warm:], reverse=True)
    if warm < total:
        assert table[warm] == 1.0


def test_optimizer_reports_and_uses_the_rate_of_the_update() -> None:
    toy = toy_training(total=20, optimizer={"learning_rate": 0.02, "warmup": 0.25, "layer_decay": 0.5})
    toy.run(0, 9)
    rate = 0.02 * (1 - 3 / 15)
    assert toy.optimizer.learning_rate(8) == pytest.approx(rate)
    for group in toy.optimizer._adamw.param_groups:
        assert group["lr"] == pytest.approx(group["base_rate"] * (1 - 3 / 15))
    assert max(group["lr"] for group in toy.optimizer._adamw.param_groups) == pytest.approx(rate)
