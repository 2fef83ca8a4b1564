"""On average over drawn updates the gradient is sum_t p_t grad L_t, however many tasks an update holds."""

from functools import cached_property
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.data.streams import TaskStream
from mtl.models.dropout import DropoutKey
from mtl.models.encoder import Encoder
from mtl.sampling.samplers import IntArray, PowerSampler, Sampler
from mtl.training.optimizer import named_parameters
from tests.training.toy_training import SIZES, TASKS, VOCABULARY, WIDTH, Toy, toy_model, toy_training

UPDATES = 2000
ROWS = 6
CHECKED = 25
"""Updates whose real gradient is compared with the sum of its rows' gradients, which stands in for the rest."""
DIRECTIONS = 20
LIMIT = 3.0
"""Standard errors. Seeds are fixed, so a right update passes always; with the wrong combination some direction is
off by more than twice as many."""


class BagOfWords(Encoder):
    """Token embeddings through a tanh, with the mean of the batch's tokens left out: the cheapest encoder there is."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.width = WIDTH
        self.model: Any = nn.Embedding(VOCABULARY, WIDTH)
        self.model.config = SimpleNamespace(num_hidden_layers=1)
        draws = torch.Generator().manual_seed(3)
        self.model.weight.data.copy_(torch.randn(VOCABULARY, WIDTH, generator=draws))

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        return torch.tanh(self.model(batch.token_ids))


class RememberedStream(TaskStream):
    """The same order, looked up: computing a handful of places at a time is what would take this test's time."""

    @cached_property
    def order(self) -> IntArray:
        return super().chosen(np.arange(UPDATES * ROWS))

    def chosen(self, places: IntArray) -> IntArray:
        return self.order[places]


def drawn_training(sampler: Sampler, combine: Literal["share", "equal"], groups: int | None) -> Toy:
    """A training whose updates leave their gradients behind but never move the weights."""
    model = toy_model(encoder=BagOfWords(), pooling="first")
    for task in TASKS:
        # Far from a task's optimum its gradient is large, which makes its share of the sum easy to measure.
        for parameter in model.head_module(task).parameters():
            parameter.data.mul_(20.0)
    toy = toy_training(
        model=model,
        sampler=sampler,
        combine=combine,
        groups=groups,
        rows=ROWS,
        total=UPDATES,
        optimizer={"clip_norm": None},
    )
    toy.planner.streams = [RememberedStream(s.task, s.seed, s.rows, s.lengths) for s in toy.planner.streams]
    toy.optimizer.step = lambda step, skip, norm: None  # type: ignore[method-assign]
    return toy


def flat_gradient(toy: Toy) -> Tensor:
    """The gradient (P,) of every parameter in turn, zeros for heads that are absent."""
    parts = [
        torch.zeros(parameter.numel()) if parameter.grad is None else parameter.grad.view(-1)
        for parameter in named_parameters(toy.model).values()
    ]
    return torch.cat(parts)


def example_gradients(toy: Toy) -> list[Tensor]:
    """For every task the gradient (rows, P) of each of its rows' losses, in fp64."""
    found = []
    for task, store in toy.preparation.source.stores.items():
        rows = []
        for row in range(store.rows):
            batch = toy.preparation.source.evaluation_batch(task, np.array([row]))
            toy.optimizer.zero()
            toy.model.losses(toy.model(batch), batch)[task].sum().backward()
            rows.append(flat_gradient(toy).double())
        found.append(torch.stack(rows))
    return found


def update_gradient(toy: Toy, examples: list[Tensor], step: int) -> Tensor:
    """The update's gradient from those of its rows, by the coefficients that the updater itself gives its tasks."""
    plan = toy.planner.plan(step)
    counts = plan.counts(len(examples))
    update = toy.update(step)
    coefficients = toy.updater._coefficients(update, torch.ones(len(examples))).double()
    parts = [
        coefficients[task] * gradients[plan.rows[plan.tasks == task]].mean(dim=0)
        for task, gradients in enumerate(examples)
        if counts[task]
    ]
    return torch.stack(parts).sum(dim=0)


def largest_deviation(toy: Toy) -> float:
    """Largest |z| over random directions of the distance from the mean gradient to sum_t p_t grad L_t.

    Rows come from permutations without replacement, which makes the mean more exact than the standard error that
    is estimated from the spread between updates: the test is on the safe side.
    """
    examples = example_gradients(toy)
    for step in range(CHECKED):
        toy.updater.run(toy.update(step))
        torch.testing.assert_close(
            flat_gradient(toy).double(), update_gradient(toy, examples, step), rtol=1e-4, atol=1e-5
        )
    draws = torch.Generator().manual_seed(9)
    directions = torch.randn(examples[0].shape[1], DIRECTIONS, generator=draws, dtype=torch.float64)
    projected = [gradients @ directions for gradients in examples]
    drawn = torch.stack([update_gradient(toy, projected, step) for step in range(UPDATES)])
    expected = sum(
        float(share) * gradients.mean(dim=0)
        for share, gradients in zip(toy.planner.probabilities(0), projected, strict=True)
    )
    errors = drawn.std(dim=0) / UPDATES**0.5
    return float(((drawn.mean(dim=0) - expected) / errors).abs().max())


EXPONENTS = {"T = 1": 1.0, "T = 5": 0.2, "uniform": 0.0}


def power_sampler(exponent: float) -> PowerSampler:
    return PowerSampler(np.array([float(size) for size in SIZES.values()]), exponent)


@pytest.mark.parametrize("groups", [1, None], ids=["one task", "mixed"])
@pytest.mark.parametrize("exponent", EXPONENTS.values(), ids=EXPONENTS.keys())
def test_mean_gradient_is_that_of_the_sampled_mixture(exponent: float, groups: int | None) -> None:
    assert largest_deviation(drawn_training(power_sampler(exponent), "share", groups)) < LIMIT


def test_equal_combination_of_mixed_updates_cancels_the_sampler() -> None:
    assert largest_deviation(drawn_training(power_sampler(1.0), "equal", None)) > 2 * LIMIT
