"""What a weighting asks for is what it gets: nothing, losses, gradients, or the losses once more after the step."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from pydantic import JsonValue
from torch import Tensor, nn

from mtl.models.dropout import DropoutKey
from mtl.training.optimizer import named_parameters
from mtl.training.prepared import PreparedUpdate
from mtl.weighting.protocol import BoolArray, Needs
from tests.training.toy_training import PAIRS, SCORES, TASKS, THREE, Toy, toy_training, with_counts


class Recorder:
    """Keeps what it was given; its weights are fixed, or follow the losses where it gets them."""

    def __init__(self, needs: Needs) -> None:
        self.needs: Needs = needs
        self.seen: list[tuple[int, BoolArray, Tensor | None, Tensor | None]] = []
        self.again: list[Tensor | None] = []

    def weights(self, step: int, present: BoolArray, losses: Tensor | None, gradients: Tensor | None) -> Tensor:
        self.seen.append((step, present, losses, gradients))
        if self.needs == "losses":
            assert losses is not None
            return 1.0 / losses
        return torch.tensor([2.0, 0.5, 3.0])

    def after_step(self, losses_again: Tensor | None) -> None:
        self.again.append(losses_again)

    def parameters(self) -> list[nn.Parameter]:
        return []

    def regulariser(self) -> Tensor | None:
        return None

    def state_dict(self) -> dict[str, JsonValue]:
        return {}

    def load_state_dict(self, state: Mapping[str, JsonValue]) -> None:
        return


class Uncertainty(Recorder):
    """Kendall et al. (2018): sum_t L_t exp(-s_t) + s_t / 2 with learned s_t."""

    def __init__(self, needs: Needs = "nothing") -> None:
        super().__init__(needs)
        self.logs = nn.Parameter(torch.tensor([0.1, -0.2, 0.3]))

    def weights(self, step: int, present: BoolArray, losses: Tensor | None, gradients: Tensor | None) -> Tensor:
        self.seen.append((step, present, losses, gradients))
        return torch.exp(-self.logs)

    def parameters(self) -> list[nn.Parameter]:
        return [self.logs]

    def regulariser(self) -> Tensor | None:
        return self.logs.sum() / 2


FREE = {"clip_norm": None, "warmup": 0.0}
WEIGHTS = [2.0, 0.5, 3.0]


def own_losses(toy: Toy, update: PreparedUpdate) -> dict[str, Tensor]:
    """Mean losses by task from a forward pass of its own, with the update's dropout."""
    toy.model.train()
    examples: dict[str, list[Tensor]] = {}
    for batch in update.batches:
        for task, values in toy.model.losses(toy.model(batch, DropoutKey(1, update.step)), batch).items():
            examples.setdefault(task, []).append(values)
    return {task: torch.cat(values).mean() for task, values in examples.items()}


def own_gradients(toy: Toy, update: PreparedUpdate, task: str) -> dict[str, Tensor]:
    """Gradient of one task's mean loss, by a backward pass of its own."""
    named = named_parameters(toy.model)
    loss = own_losses(toy, update)[task]
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {name: gradient for name, gradient in zip(named, found, strict=True) if gradient is not None}


def encoder_part(gradients: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([value.flatten() for name, value in gradients.items() if name.startswith("encoder/")])


def as_vector(losses: Mapping[str, Tensor]) -> Tensor:
    return torch.tensor([losses[task].item() if task in losses else float("nan") for task in TASKS])


def test_nothing_is_given_to_a_weighting_that_needs_nothing() -> None:
    weighting = Recorder("nothing")
    toy = toy_training(weighting=weighting, micro_batches=2)
    result = toy.updater.run(toy.update(4))
    assert len(weighting.seen) == 1
    step, present, losses, gradients = weighting.seen[0]
    assert (step, losses, gradients) == (4, None, None)
    np.testing.assert_array_equal(present, result.update.counts > 0)
    assert weighting.again == [None]
    assert result.weights.tolist() == WEIGHTS


@pytest.mark.parametrize("present", [TASKS, (PAIRS, THREE)])
def test_losses_are_the_raw_means_and_micro_batches_change_nothing(present: tuple[str, ...]) -> None:
    found = []
    for micro_batches in (1, 3):
        weighting = Recorder("losses")
        toy = toy_training(
            weighting=weighting, micro_batches=micro_batches, dropout=0.1, rows=5, optimizer={"clip_norm": None}
        )
        update = with_counts(toy, *present)
        assert len(update.batches) == micro_batches
        expected = as_vector(own_losses(toy, update))
        result = toy.updater.run(update)
        assert len(weighting.seen) == 1, "one answer an update, whatever its micro-batches"
        losses = weighting.seen[0][2]
        assert losses is not None
        assert not losses.requires_grad
        torch.testing.assert_close(losses, expected, rtol=1e-5, atol=0.0, equal_nan=True)
        torch.testing.assert_close(result.losses, expected, rtol=1e-5, atol=0.0, equal_nan=True)
        torch.testing.assert_close(result.weights, 1.0 / expected, rtol=1e-5, atol=0.0, equal_nan=True)
        found.append(toy.gradients())
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("present", [TASKS, (PAIRS, SCORES)])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_gradient_methods_get_the_gramian_and_weight_the_encoder_alone(
    present: tuple[str, ...], micro_batches: int
) -> None:
    weighting = Recorder("gradients")
    toy = toy_training(
        weighting=weighting, micro_batches=micro_batches, dropout=0.1, rows=5, optimizer={"clip_norm": None}
    )
    update = with_counts(toy, *present)
    separate = {task: own_gradients(toy, update, task) for task in present}
    toy.updater.run(update)
    products = weighting.seen[0][3]
    assert products is not None
    for row, first in enumerate(TASKS):
        for column, second in enumerate(TASKS):
            if first in present and second in present:
                expected = encoder_part(separate[first]) @ encoder_part(separate[second])
                torch.testing.assert_close(products[row, column], expected, rtol=1e-4, atol=1e-6)
            else:
                assert torch.isnan(products[row, column])
    found = toy.gradients()
    combined = sum(WEIGHTS[TASKS.index(task)] * encoder_part(separate[task]) for task in present)
    torch.testing.assert_close(encoder_part(found), combined, rtol=1e-4, atol=1e-6)
    heads = {name: value for name, value in found.items() if not name.startswith("encoder/")}
    assert {name.rpartition("/")[0] for name in heads} == set(present)
    for name, gradient in heads.items():
        torch.testing.assert_close(gradient, separate[name.rpartition("/")[0]][name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_second_forward_sees_the_same_batch_and_dropout_after_the_step(micro_batches: int) -> None:
    weighting = Recorder("second_forward")
    toy = toy_training(weighting=weighting, micro_batches=micro_batches, dropout=0.3, rows=5, optimizer=FREE)
    update = with_counts(toy, PAIRS, SCORES)
    before = as_vector(own_losses(toy, update))
    result = toy.updater.run(update)
    after = as_vector(own_losses(toy, update))
    losses, again = weighting.seen[0][2], weighting.again[0]
    assert losses is not None
    assert again is not None
    assert not again.requires_grad
    torch.testing.assert_close(losses, before, rtol=1e-5, atol=0.0, equal_nan=True)
    torch.testing.assert_close(again, after, rtol=1e-5, atol=0.0, equal_nan=True)
    assert not torch.allclose(again[0], losses[0], rtol=1e-3), "the step must show in the second losses"
    torch.testing.assert_close(result.losses, before, rtol=1e-5, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("needs", ["nothing", "losses", "second_forward"])
@pytest.mark.parametrize("combine", ["share", "equal"])
@pytest.mark.parametrize("present", [TASKS, (PAIRS, SCORES)])
def test_learned_weights_follow_their_own_gradient(present: tuple[str, ...], combine: str, needs: Needs) -> None:
    weighting = Uncertainty(needs)
    toy = toy_training(weighting=weighting, combine=combine, rows=5, optimizer=FREE)  # type: ignore[arg-type]
    update = with_counts(toy, *present)
    losses = torch.stack(
        [own_losses(toy, update)[task].detach() if task in present else torch.zeros(()) for task in TASKS]
    )
    logs = weighting.logs.detach().clone().requires_grad_()
    here = torch.tensor([float(task in present) for task in TASKS])
    factors = torch.exp(-logs) * here
    shares = torch.tensor(update.counts / update.counts.sum(), dtype=torch.float32)
    combined = factors * shares if combine == "share" else factors / factors.sum()
    ((combined * losses).sum() + logs.sum() / 2).backward()
    before = weighting.logs.detach().clone()
    result = toy.updater.run(update)
    assert float(result.not_finite) == 0.0
    assert weighting.logs.grad is not None
    torch.testing.assert_close(weighting.logs.grad, logs.grad, rtol=1e-4, atol=1e-6)
    assert not result.weights.requires_grad
    assert not torch.equal(weighting.logs, before)


def test_learned_weights_are_in_the_optimizers_state_and_do_not_decay() -> None:
    toy = toy_training(weighting=Uncertainty(), optimizer={"weight_decay": 0.5})
    toy.run(0, 3)
    assert float(toy.optimizer.state_tensors()["weighting.0/step"]) == 3
    decays = [
        group["weight_decay"] for group in toy.optimizer._adamw.param_groups for p in group["params"] if p.shape == (3,)
    ]
    assert set(decays) == {0.0}
