"""The one place through which this project's own layers apply weights.

Parameters stay fp32. In bf16 a weight is rounded as it is applied, and its gradient comes back in fp32. Letters: R
rows, D input width, E output width.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear(inputs_RD: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
    """``inputs (R, D) -> (R, E)``: inputs times the transposed weight, plus the bias, in the inputs' dtype.

    Inside an autocast region that region's dtype holds. Reference: ``torch.nn.functional.linear``.
    """
    if inputs_RD.dtype == weight_ED.dtype or torch.is_autocast_enabled(inputs_RD.device.type) or bias_E is None:
        return F.linear(inputs_RD, weight_ED, bias_E)
    out: Tensor = _Rounded.apply(inputs_RD, weight_ED, bias_E)  # type: ignore[no-untyped-call]
    return out


def linear_side_by_side(inputs_RD: Tensor, layers: Sequence[nn.Linear]) -> Tensor:
    """The layers' outputs side by side (R, sum of E) by one matrix product. Reference: ``linear`` of each, joined."""
    parameters = [layer.weight for layer in layers] + [layer.bias for layer in layers]
    out: Tensor = _SideBySide.apply(inputs_RD, *parameters)  # type: ignore[no-untyped-call]
    return out


class _Rounded(torch.autograd.Function):
    """A linear layer on fp32 parameters in the inputs' lower precision."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rounded = weight.to(inputs.dtype)
        ctx.save_for_backward(inputs, rounded)
        return F.linear(inputs, rounded, bias.to(inputs.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, rounded = ctx.saved_tensors
        to_inputs = gradient @ rounded if ctx.needs_input_grad[0] else None
        return to_inputs, (gradient.t() @ inputs).float(), gradient.sum(0).float()


class _SideBySide(torch.autograd.Function):
    """Several linear layers of one width on the same inputs."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, *parameters: Tensor) -> Tensor:
        count = len(parameters) // 2
        weight = torch.cat([part.to(inputs.dtype) for part in parameters[:count]])
        bias = torch.cat([part.to(inputs.dtype) for part in parameters[count:]])
        ctx.save_for_backward(inputs, weight)
        ctx.count = count
        return F.linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        # Sums are accumulated in fp32 either way; asking for an fp32 result takes three times as long.
        to_weights = (gradient.t() @ inputs).float().chunk(ctx.count)
        to_biases = gradient.sum(0).float().chunk(ctx.count)
        return gradient @ weight, *to_weights, *to_biases
