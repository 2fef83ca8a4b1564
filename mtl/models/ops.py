"""The one place through which this project's own layers apply weights.

Parameters stay fp32. In bf16 a weight is rounded before it is applied, and its gradient comes back in fp32. Letters: R
rows, D input width, E output width.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtl.models.working_weights import WorkingWeights


def linear(inputs_RD: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
    """``inputs (R, D) -> (R, E)``: inputs times the transposed weight, plus the bias, in the inputs' dtype.

    Inside an autocast region that region's dtype holds. Reference: ``torch.nn.functional.linear``.
    """
    if inputs_RD.dtype == weight_ED.dtype or torch.is_autocast_enabled(inputs_RD.device.type) or bias_E is None:
        return F.linear(inputs_RD, weight_ED, bias_E)
    rounded = [parameter.detach().to(inputs_RD.dtype) for parameter in (weight_ED, bias_E)]
    out: Tensor = _Applied.apply(inputs_RD, *rounded, weight_ED, bias_E)  # type: ignore[no-untyped-call]
    return out


def linear_side_by_side(
    inputs_RD: Tensor, layers: Sequence[nn.Linear], working: WorkingWeights | None = None
) -> Tensor:
    """The layers' outputs side by side (R, sum of E) by one matrix product. Reference: ``linear`` of each, joined.

    ``working`` holds their weights for training in bf16 on a CPU.
    """
    weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
    applied = working.of(layers) if working is not None and working.serve(inputs_RD) else None
    if applied is None:
        applied = _joined(weights, inputs_RD.dtype), _joined(biases, inputs_RD.dtype)
    out: Tensor = _Applied.apply(inputs_RD, *applied, *weights, *biases)  # type: ignore[no-untyped-call]
    return out


def _joined(parameters: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """In this dtype, one after the other."""
    parts = [parameter.detach().to(dtype) for parameter in parameters]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class _Applied(torch.autograd.Function):
    """Linear layers of one width on the same inputs, by a weight and a bias made of their parameters."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, *parameters: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.count = len(parameters) // 2
        return F.linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        # Sums are accumulated in fp32 either way; asking for an fp32 result takes three times as long.
        to_weights = (gradient.t() @ inputs).float().chunk(ctx.count)
        to_biases = gradient.sum(0).float().chunk(ctx.count)
        to_inputs = gradient @ weight if ctx.needs_input_grad[0] else None
        return to_inputs, None, None, *to_weights, *to_biases
