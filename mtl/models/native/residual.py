"""Dropout, residual and layer norm in one step. Reference: ``layer_norm(residual + dropout(inputs))``.

Letters: R rows, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mtl.models.masks import KeepMask, masked


def residual_norm(inputs_RD: Tensor, residual_RD: Tensor, norm: nn.LayerNorm, keep: KeepMask | None) -> Tensor:
    """``norm(residual + dropout(inputs))`` (R, D), the norm computed in fp32 and returned in the inputs' dtype."""
    out: Tensor = _ResidualNorm.apply(inputs_RD, residual_RD, norm.weight, norm.bias, norm.eps, keep)  # type: ignore[no-untyped-call]
    return out


class _ResidualNorm(torch.autograd.Function):
    """Keeps the sum, its statistics and the mask for backward; the dropped inputs are not kept."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        residual: Tensor,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        keep: KeepMask | None,
    ) -> Tensor:
        # Not by alpha of the addition: it is rounded to bf16, which makes 1 / 0.9 0.16% too small.
        kept = inputs if keep is None else masked(inputs, keep).mul_(keep.scale)
        summed = residual + kept
        normed, mean, deviation = torch.native_layer_norm(_readable(summed), summed.shape[-1:], weight, bias, epsilon)
        ctx.save_for_backward(summed, mean, deviation, weight, bias)
        ctx.keep = keep
        return normed.to(summed.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        summed, mean, deviation, weight, bias = ctx.saved_tensors
        statistics = (summed.shape[-1:], mean, deviation)
        through, to_weight, to_bias = torch.ops.aten.native_layer_norm_backward(
            _readable(gradient.contiguous()), _readable(summed), *statistics, weight, bias, [True, True, True]
        )
        through = through.to(summed.dtype)
        to_inputs = through if ctx.keep is None else masked(through, ctx.keep).mul_(ctx.keep.scale)
        return to_inputs, through, to_weight, to_bias, None, None


def _readable(rows: Tensor) -> Tensor:
    """The rows as the norm with fp32 parameters takes them: in bf16 on a CPU, in fp32 alone on a GPU."""
    return rows.float() if _widens(rows.device) else rows


def _widens(device: torch.device) -> bool:
    return device.type != "cpu"
