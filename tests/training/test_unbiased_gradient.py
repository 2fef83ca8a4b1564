"""On average over drawn updates the gradient is sum_t p_t grad L_t, however many tasks an update holds."""

from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.models.dropout import DropoutKey
from mtl.models.encoder import Encoder
from mtl.sampling.samplers import PowerSampler, Sampler
from mtl.training.optimizer import named_parameters
from tests.training.toy_training import SIZES, TASKS, VOCABULARY, WIDTH, Toy, toy_model, toy_training

UPDATES = 2000
ROWS = 6
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

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None) -> Tensor:
        return torch.tanh(self.model(batch.token_ids))


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
    toy.optimizer.step = lambda step, skip: None  # type: ignore[method-assign]
    return toy


def flat_gradient(toy: Toy) -> Tensor:
    """The gradient of every parameter in turn, zeros for heads that are absent."""
    parts = [
        torch.zeros(parameter.numel()) if parameter.grad is None else parameter.grad.view(-1)
        for parameter in named_parameters(toy.model).values()
    ]
    return torch.cat(parts)


def expected_gradient(toy: Toy) -> Tensor:
    """sum_t p_t grad L_t, each L_t over all rows of its task."""
    total = torch.zeros(())
    for number, (task, store) in enumerate(toy.preparation.source.stores.items()):
        batch = toy.preparation.source.evaluation_batch(task, np.arange(store.rows))
        mean = toy.model.losses(toy.model(batch), batch)[task].mean()
        total = total + float(toy.planner.probabilities(0)[number]) * mean
    toy.optimizer.zero()
    total.backward()
    return flat_gradient(toy)


def largest_deviation(toy: Toy) -> float:
    """Largest |z| over random directions of the mean gradient's distance to the expected one.

    Rows come from permutations without replacement, which makes the mean more exact than the standard error that
    is estimated from the spread between updates: the test is on the safe side.
    """
    expected = expected_gradient(toy).double()
    draws = torch.Generator().manual_seed(9)
    directions = torch.randn(expected.numel(), DIRECTIONS, generator=draws, dtype=torch.float64)
    projected = torch.empty(UPDATES, DIRECTIONS, dtype=torch.float64)
    for step in range(UPDATES):
        toy.updater.run(toy.update(step))
        projected[step] = (flat_gradient(toy).double() - expected) @ directions
    errors = projected.std(dim=0) / UPDATES**0.5
    return float((projected.mean(dim=0) / errors).abs().max())


EXPONENTS = {"T = 1": 1.0, "T = 5": 0.2, "uniform": 0.0}


def power_sampler(exponent: float) -> PowerSampler:
    return PowerSampler(np.array([float(size) for size in SIZES.values()]), exponent)


@pytest.mark.parametrize("groups", [1, None], ids=["one task", "mixed"])
@pytest.mark.parametrize("exponent", EXPONENTS.values(), ids=EXPONENTS.keys())
def test_mean_gradient_is_that_of_the_sampled_mixture(exponent: float, groups: int | None) -> None:
    assert largest_deviation(drawn_training(power_sampler(exponent), "share", groups)) < LIMIT


def test_equal_combination_of_mixed_updates_cancels_the_sampler() -> None:
    assert largest_deviation(drawn_training(power_sampler(1.0), "equal", None)) > 2 * LIMIT
