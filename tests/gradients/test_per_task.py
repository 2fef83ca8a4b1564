"""Per-task gradients of a shared part: those of separate backward passes, absent tasks as NaN."""

import math

import pytest
import torch
from torch import Tensor, nn

from mtl.gradients.per_task import encoder_gradients, gramian

CPU = torch.device("cpu")


class Shared(nn.Module):
    """A shared layer that is used, one that is not, and two heads."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(1)
            self.encoder = nn.ModuleDict({"used": nn.Linear(3, 4), "unused": nn.Linear(2, 2)})
            self.heads = nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 1)])

    def losses(self) -> list[Tensor]:
        """One scalar a task from one common forward pass."""
        draws = torch.Generator().manual_seed(2)
        hidden = torch.tanh(self.encoder["used"](torch.randn(5, 3, generator=draws)))
        return [head(hidden).square().mean() for head in self.heads]


def plain(model: Shared, task: int) -> tuple[Tensor, list[Tensor]]:
    """Encoder and head gradient of a task by ``backward``."""
    model.zero_grad()
    model.losses()[task].backward()
    flat = [
        torch.zeros(p.numel()) if p.grad is None else p.grad.reshape(-1).clone() for p in model.encoder.parameters()
    ]
    return torch.cat(flat), [p.grad.clone() for p in model.heads[task].parameters() if p.grad is not None]


def test_equal_separate_backward_passes_and_leave_encoder_and_other_heads_alone() -> None:
    model = Shared()
    expected = [plain(model, task) for task in (0, 1)]
    model.zero_grad()
    losses = model.losses()
    for task in (0, 1):
        found = encoder_gradients(
            losses[task], list(model.encoder.parameters()), model.heads[task], keep_graph=task == 0
        )
        assert torch.equal(found, expected[task][0])
        others = [p.grad for head in model.heads[task + 1 :] for p in head.parameters()]
        assert others == [None] * len(others)
    assert all(parameter.grad is None for parameter in model.encoder.parameters())
    for task in (0, 1):
        for parameter, gradient in zip(model.heads[task].parameters(), expected[task][1], strict=True):
            assert parameter.grad is not None
            assert torch.equal(parameter.grad, gradient)


def test_heads_add_up_over_micro_batches() -> None:
    model = Shared()
    _, expected = plain(model, 0)
    model.zero_grad()
    for _ in range(3):
        encoder_gradients(model.losses()[0], list(model.encoder.parameters()), model.heads[0], keep_graph=False)
    for parameter, gradient in zip(model.heads[0].parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, 3 * gradient)


def test_graph_is_freed_unless_it_is_kept() -> None:
    model = Shared()
    losses = model.losses()
    encoder_gradients(losses[0], list(model.encoder.parameters()), model.heads[0], keep_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        encoder_gradients(losses[1], list(model.encoder.parameters()), model.heads[1], keep_graph=False)


def test_gramian_of_the_toy_of_the_literature() -> None:
    first, second = torch.tensor([1.0, 0.0]), torch.tensor([-0.5, 1.0])
    torch.testing.assert_close(gramian([first, second], CPU), torch.tensor([[1.0, -0.5], [-0.5, 1.25]]))


def test_gramian_marks_absent_tasks() -> None:
    products = gramian([None, torch.tensor([3.0, 4.0]), None, torch.tensor([1.0, 0.0])], CPU)
    assert products.shape == (4, 4)
    assert products[1].tolist()[1::2] == [25.0, 3.0]
    assert products[3].tolist()[1::2] == [3.0, 1.0]
    for row in range(4):
        for column in range(4):
            assert math.isnan(products[row, column]) == (row in (0, 2) or column in (0, 2))


def test_gramian_is_in_fp32() -> None:
    # In bf16 the sum of 1,000 ones would stick at 256.
    products = gramian([torch.ones(1000, dtype=torch.bfloat16)], CPU)
    assert products.dtype == torch.float32
    assert products.item() == 1000.0
