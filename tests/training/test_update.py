"""One update: whole or in micro-batches, with heads absent, with numbers that are not finite, combined as asked."""

from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from mtl.errors import NonFiniteError
from mtl.models.dropout import DropoutKey
from mtl.models.load import wrap_model
from mtl.training.loop import run_updates
from mtl.training.optimizer import named_parameters
from mtl.training.prepared import PreparedUpdate
from mtl.weighting.constant import ConstantWeights
from tests.training.toy_training import (
    PAIRS,
    SCORES,
    TASKS,
    THREE,
    Toy,
    relative_difference,
    toy_bert,
    toy_model,
    toy_training,
    with_counts,
)

Combine = Literal["share", "equal"]


def plain_gradients(toy: Toy, update: PreparedUpdate, task: str) -> dict[str, Tensor]:
    """The gradient of the mean loss of ``task`` over the update, by a forward and backward pass of its own."""
    toy.model.train()
    losses = []
    for batch in update.batches:
        if task in batch.tasks:
            losses.append(toy.model.losses(toy.model(batch, DropoutKey(1, update.step)), batch)[task])
    named = named_parameters(toy.model)
    found = torch.autograd.grad(torch.cat(losses).mean(), list(named.values()), allow_unused=True)
    return {name: gradient for name, gradient in zip(named, found, strict=True) if gradient is not None}


@pytest.fixture(scope="module")
def whole_run() -> tuple[list[Tensor], dict[str, Tensor]]:
    toy = toy_training(dropout=0.1)
    results = toy.run(0, 50)
    return [result.losses for result in results], toy.weights()


@pytest.mark.parametrize("micro_batches", [2, 4])
def test_accumulated_updates_equal_whole_ones(
    micro_batches: int, whole_run: tuple[list[Tensor], dict[str, Tensor]]
) -> None:
    toy = toy_training(dropout=0.1, micro_batches=micro_batches)
    results = toy.run(0, 50)
    assert all(len(result.update.batches) == micro_batches for result in results)
    losses, weights = whole_run
    for result, expected in zip(results, losses, strict=True):
        torch.testing.assert_close(result.losses, expected, rtol=1e-5, atol=0.0, equal_nan=True)
    for name, weight in toy.weights().items():
        # A key's bias shifts all scores of a query alike, so its gradient is rounding noise that Adam blows up.
        limit = 1e-3 if name.endswith("key.bias") else 1e-5
        assert relative_difference(weight, weights[name]) < limit, name


def test_padded_updates_equal_packed_ones(whole_run: tuple[list[Tensor], dict[str, Tensor]]) -> None:
    toy = toy_training(model=toy_model(dropout=0.1, encoder=wrap_model(toy_bert(0.1), "padded")))
    for result, expected in zip(toy.run(0, 20), whole_run[0], strict=False):
        torch.testing.assert_close(result.losses, expected, rtol=1e-5, atol=0.0, equal_nan=True)


def test_update_is_the_same_every_time() -> None:
    first, second = toy_training(dropout=0.1), toy_training(dropout=0.1)
    first.run(0, 5)
    second.run(0, 5)
    assert all(torch.equal(weight, second.weights()[name]) for name, weight in first.weights().items())


@pytest.mark.parametrize("combine", ["share", "equal"])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_coefficients_are_those_of_the_formula(combine: Combine, micro_batches: int) -> None:
    weights = np.array([2.0, 0.5, 3.0])
    toy = toy_training(
        combine=combine,
        micro_batches=micro_batches,
        weighting=ConstantWeights(weights),
        optimizer={"clip_norm": None},
    )
    update = with_counts(toy, *TASKS)
    shares = update.counts / update.counts.sum()
    assert len(set(shares)) > 1, "equal shares would hide a wrong formula"
    expected = weights * shares if combine == "share" else weights / weights.sum()
    parts = [plain_gradients(toy, update, task) for task in TASKS]
    toy.updater.run(update)
    for name, gradient in toy.gradients().items():
        wanted = sum(factor * part[name] for factor, part in zip(expected, parts, strict=True) if name in part)
        torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("combine", ["share", "equal"])
def test_absent_task_is_masked_and_not_a_zero_loss(combine: Combine) -> None:
    toy = toy_training(combine=combine, rows=3, weighting=ConstantWeights([2.0, 1.0, float("nan")]))
    update = with_counts(toy, PAIRS, THREE)
    expected = np.array([2.0, 1.0]) * (update.counts[:2] / 3 if combine == "share" else 1 / 3)
    parts = [plain_gradients(toy, update, task) for task in (PAIRS, THREE)]
    toy.optimizer._settings = toy.optimizer._settings.model_copy(update={"clip_norm": None})
    result = toy.updater.run(update)
    assert torch.isfinite(result.losses[:2]).all()
    assert torch.isnan(result.losses[2])
    assert float(result.not_finite) == 0.0
    name = "encoder/encoder.layer.0.output.dense.weight"
    wanted = expected[0] * parts[0][name] + expected[1] * parts[1][name]
    torch.testing.assert_close(toy.gradients()[name], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("combine", ["share", "equal"])
def test_update_of_tasks_without_weight_has_no_gradient(combine: Combine) -> None:
    toy = toy_training(combine=combine, rows=3, weighting=ConstantWeights([0.0, 1.0, 1.0]))
    result = toy.updater.run(with_counts(toy, PAIRS))
    assert float(result.not_finite) == 0.0
    assert torch.isfinite(result.losses[0])
    assert all(not gradient.any() for gradient in toy.gradients().values())


def test_absent_heads_take_no_step_and_go_on_afterwards() -> None:
    toy = toy_training(rows=3, dropout=0.1, optimizer={"weight_decay": 0.5, "warmup": 0.0})
    toy.updater.run(with_counts(toy, *TASKS))
    before, state = toy.weights(), {name: value.clone() for name, value in toy.optimizer.state_tensors().items()}
    toy.updater.run(with_counts(toy, PAIRS))
    after, moved = toy.weights(), toy.optimizer.state_tensors()
    for name in before:
        assert torch.equal(before[name], after[name]) == name.startswith((THREE, SCORES)), name
        for key in ("step", "exp_avg", "exp_avg_sq"):
            same = torch.equal(state[f"{name}/{key}"], moved[f"{name}/{key}"])
            assert same == name.startswith((THREE, SCORES)), (name, key)
    toy.updater.run(with_counts(toy, *TASKS))
    for name, weight in toy.weights().items():
        assert not torch.equal(weight, after[name]), name
        steps = 2 if name.startswith((THREE, SCORES)) else 3
        assert float(toy.optimizer.state_tensors()[f"{name}/step"]) == steps, name


def run_until_error(toy: Toy, update: PreparedUpdate) -> str:
    """Run the update through the loop, assert that it failed before its step and return the message."""
    before, state = toy.weights(), {name: value.clone() for name, value in toy.optimizer.state_tensors().items()}
    seen = []
    with pytest.raises(NonFiniteError) as caught:
        run_updates([update], toy.updater, lambda result: seen.append(result) is not None)
    assert caught.value.exit_code == 4
    assert not seen, "nothing may be logged or saved after a bad update"
    assert all(torch.equal(weight, before[name]) for name, weight in toy.weights().items())
    assert all(torch.equal(value, state[name]) for name, value in toy.optimizer.state_tensors().items())
    return str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_loss_that_is_not_finite_stops_before_the_step(value: float, micro_batches: int) -> None:
    toy = toy_training(micro_batches=micro_batches, optimizer={"warmup": 0.0})
    toy.run(0, 2)
    update = toy.update(2)
    batch = next(batch for batch in reversed(update.batches) if SCORES in batch.tasks)
    batch.targets[SCORES][-1] = value
    row = int(batch.example_ids[batch.layout.slices[SCORES]][-1])
    message = run_until_error(toy, update)
    assert f"loss of {SCORES}" in message
    assert "update 2" in message
    assert f"rows [{row}]" in message


def test_gradient_that_is_not_finite_stops_before_the_step() -> None:
    toy = toy_training(optimizer={"warmup": 0.0})
    toy.run(0, 2)
    handle = toy.model.encoder.model.encoder.layer[0].output.dense.weight.register_hook(lambda g: g * float("nan"))
    message = run_until_error(toy, toy.update(2))
    handle.remove()
    assert "gradient is not finite at update 2" in message
    assert all(task in message for task in TASKS)


def test_after_a_bad_update_later_ones_leave_the_weights_alone() -> None:
    toy = toy_training(optimizer={"warmup": 0.0})
    update = toy.update(0)
    update.batches[0].targets[SCORES][0] = float("nan")
    before = toy.weights()
    assert float(toy.updater.run(update).not_finite) == 1.0
    assert float(toy.updater.run(toy.update(1)).not_finite) == 1.0
    assert all(torch.equal(weight, before[name]) for name, weight in toy.weights().items())


def test_loop_ends_early_when_the_hook_says_so() -> None:
    toy = toy_training()
    seen: list[int] = []

    def stop_at_three(result: object) -> bool:
        seen.append(len(seen))
        return len(seen) == 3

    run_updates((toy.update(step) for step in range(10)), toy.updater, stop_at_three)
    assert seen == [0, 1, 2]
