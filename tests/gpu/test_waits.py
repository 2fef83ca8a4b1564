"""What would make the host wait for a GPU is found on a CPU as well."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.gpu.waits import HostWaitError, RefuseWaits

VALUES = torch.arange(6.0)
COUNTS = torch.tensor([1, 2, 3])


@pytest.mark.parametrize(
    "action",
    [
        lambda: VALUES.sum().item(),
        lambda: float(VALUES.sum()),
        lambda: bool((VALUES > 0).any()),
        lambda: 3.0 in VALUES,
        lambda: VALUES[VALUES > 2],
        lambda: VALUES.clone().__setitem__(VALUES > 2, 0.0),
        lambda: VALUES.nonzero(),
        lambda: torch.where(VALUES > 2),
        lambda: VALUES.unique(),
        lambda: torch.equal(VALUES, VALUES),
        lambda: torch.repeat_interleave(COUNTS, COUNTS),
        lambda: VALUES.to("meta"),
        lambda: VALUES.to("meta", non_blocking=True),
        lambda: torch.empty(6, device="meta").copy_(VALUES),
    ],
)
def test_waiting_is_refused(action: Callable[[], object]) -> None:
    with RefuseWaits(), pytest.raises(HostWaitError):
        action()


@pytest.mark.parametrize(
    "action",
    [
        lambda: VALUES[COUNTS],
        lambda: VALUES.clone().masked_fill_(VALUES > 2, 0.0),
        lambda: torch.repeat_interleave(COUNTS, COUNTS, output_size=6),
        lambda: torch.searchsorted(VALUES, VALUES).argsort(),
        lambda: VALUES.double(),
        lambda: torch.where(VALUES > 2, VALUES, 0.0),
    ],
)
def test_what_does_not_wait_is_let_through(action: Callable[[], Tensor]) -> None:
    with RefuseWaits():
        action()


def test_waiting_in_a_backward_pass_is_refused() -> None:
    class Waits(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, inputs: Tensor) -> Tensor:
            return inputs.clone()

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> Tensor:
            return gradient * float(gradient.sum())

    inputs = VALUES.clone().requires_grad_()
    with RefuseWaits(), pytest.raises(HostWaitError):
        Waits.apply(inputs).sum().backward()
