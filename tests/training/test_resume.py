"""k updates are j updates, saved, loaded into a fresh training, and k - j more: bit for bit."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mtl.training.flops import FlopCounter
from mtl.training.optimizer import named_parameters
from mtl.training.totals import Totals
from mtl.training.tracking import LossWindow
from tests.training.toy_training import TASKS, Toy, toy_training

UPDATES, SAVED = 12, 5


def make() -> Toy:
    """Three rows an update, so that heads are often absent and not every one has stepped when the state is saved."""
    return toy_training(dropout=0.1, rows=3, total=UPDATES, micro_batches=2)


def copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def continued(first: Toy, saved: Callable[[Toy], dict[str, Tensor]]) -> Toy:
    """A new training at the place where ``first`` stands, from plain copies of its state."""
    second = make()
    with torch.no_grad():
        for name, parameter in named_parameters(second.model).items():
            parameter.copy_(first.weights()[name])
    second.optimizer.load_state_tensors(saved(first))
    second.planner.seek(SAVED, first.planner.cursors(SAVED))
    return second


def test_resumed_training_equals_the_uninterrupted_one() -> None:
    whole, first = make(), make()
    expected = whole.run(0, UPDATES)
    first.run(0, SAVED)
    second = continued(first, lambda toy: copied(toy.optimizer.state_tensors()))
    results = second.run(SAVED, UPDATES)
    for result, wanted in zip(results, expected[SAVED:], strict=True):
        assert torch.equal(torch.nan_to_num(result.losses), torch.nan_to_num(wanted.losses))
        assert torch.equal(result.gradient_norm, wanted.gradient_norm)
    assert all(torch.equal(value, whole.weights()[name]) for name, value in second.weights().items())
    state = whole.optimizer.state_tensors()
    assert second.optimizer.state_tensors().keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in second.optimizer.state_tensors().items())


def test_state_of_the_optimizer_matters() -> None:
    whole, first = make(), make()
    whole.run(0, UPDATES)
    first.run(0, SAVED)
    second = continued(first, lambda toy: {})
    second.run(SAVED, UPDATES)
    assert not all(torch.equal(value, whole.weights()[name]) for name, value in second.weights().items())


def test_totals_continue(tmp_path: Path) -> None:
    toy = make()
    counter = FlopCounter.of(toy.model)
    whole, first, second = (Totals(TASKS, counter) for _ in range(3))
    updates = [toy.update(step) for step in range(UPDATES)]
    for update in updates:
        whole.add(update)
    for update in updates[:SAVED]:
        first.add(update)
    state = first.state_dict()
    second.load(json.loads(json.dumps(state)), copied(first.state_tensors()))
    assert second.seconds >= state["seconds"]  # type: ignore[operator]
    for update in updates[SAVED:]:
        second.add(update)
    assert (second.updates, second.examples, second.tokens) == (UPDATES, 3 * UPDATES, whole.tokens)
    assert second.flops == whole.flops
    np.testing.assert_array_equal(second.cursors, whole.cursors)
    np.testing.assert_array_equal(second.cursors, toy.planner.cursors(UPDATES))
    whole.write_sequence(tmp_path / "whole.npz")
    second.write_sequence(tmp_path / "second.npz")
    with np.load(tmp_path / "whole.npz") as expected, np.load(tmp_path / "second.npz") as found:
        assert found["task_names"].tolist() == list(TASKS)
        assert found["counts"].shape == (UPDATES, len(TASKS))
        for name in ("task_names", "counts", "cursors"):
            np.testing.assert_array_equal(found[name], expected[name])
    cost = second.cost({})
    assert (cost.updates, cost.examples, cost.tokens, cost.flops) == (UPDATES, 3 * UPDATES, whole.tokens, whole.flops)


def test_totals_saved_before_the_first_update_continue() -> None:
    counter = FlopCounter.of(make().model)
    first, second = Totals(TASKS, counter), Totals(TASKS, counter)
    second.load(first.state_dict(), first.state_tensors())
    assert (second.updates, second.examples, second.cursors.tolist()) == (0, 0, [0, 0, 0])


def test_loss_window_continues() -> None:
    toy = make()
    results = toy.run(0, UPDATES)
    whole, first, second = (LossWindow(TASKS) for _ in range(3))
    for result in results:
        whole.add(result)
    for result in results[:SAVED]:
        first.add(result)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for result in results[SAVED:]:
        second.add(result)
    assert second.take() == whole.take()


def test_loss_window_means_are_over_the_updates_that_hold_the_task() -> None:
    toy = make()
    results = toy.run(0, UPDATES)
    window = LossWindow(TASKS)
    for result in results:
        window.add(result)
    means = window.take()
    for number, task in enumerate(TASKS):
        losses = [float(result.losses[number]) for result in results if result.update.counts[number]]
        assert 0 < len(losses) < UPDATES
        assert means[f"train/{task}/loss"] == pytest.approx(np.mean(losses))
        assert means[f"train/{task}/weight"] == 1.0
    assert means["gradient/norm"] == pytest.approx(np.mean([float(result.gradient_norm) for result in results]))
    assert window.take() == {}


def test_loss_window_has_no_record_of_a_task_that_was_absent_throughout() -> None:
    toy = make()
    window = LossWindow(TASKS)
    result = toy.run(0, 1)[0]
    window.add(result)
    logged = {name.removeprefix("train/").removesuffix("/loss") for name in window.take() if name.endswith("/loss")}
    assert logged == {task for number, task in enumerate(TASKS) if result.update.counts[number]}
    assert logged != set(TASKS)
