"""Per-task gradients of the shared encoder, and the inner products between them.

Letters: P parameters of the encoder in all, K tasks. One backward pass a task; the arithmetic of a single one would do,
because tasks share no tokens.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mtl.runtime.device import to_device


def encoder_gradients(loss: Tensor, encoder: Sequence[nn.Parameter], head: nn.Module, *, keep_graph: bool) -> Tensor:
    """The gradient (P,) of one task's ``loss`` in the encoder; the head's own gradients are added to its ``.grad``."""
    heads = list(head.parameters())
    # A head that this loss does not reach, or an unused layer, has None.
    gradients: Sequence[Tensor | None] = torch.autograd.grad(
        loss, [*encoder, *heads], retain_graph=keep_graph, allow_unused=True
    )
    for parameter, gradient in zip(heads, gradients[len(encoder) :], strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
    flat = [
        torch.zeros_like(parameter).view(-1) if gradient is None else gradient.reshape(-1)
        for parameter, gradient in zip(encoder, gradients, strict=False)
    ]
    return torch.cat(flat)


def gramian(gradients: Sequence[Tensor | None], device: torch.device) -> Tensor:
    """Inner products (K, K) in fp32 of the tasks' gradients; rows and columns of absent tasks (None) are NaN."""
    products = torch.full((len(gradients), len(gradients)), float("nan"), device=device)
    present = [number for number, gradient in enumerate(gradients) if gradient is not None]
    stacked = torch.stack([gradient.float() for gradient in gradients if gradient is not None])
    index = to_device(torch.tensor(present), device)
    products[index[:, None], index[None, :]] = stacked @ stacked.T
    return products
