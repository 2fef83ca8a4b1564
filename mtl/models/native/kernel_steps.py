"""A layer's steps by compiled kernels, on a CPU: sequences where they lie, masks hashed where they are applied.

Reference: the same steps in ``torch_steps.py``, which drop the same elements. Letters: R rows (tokens and some filler),
S sequences, D width.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mtl.data.batches import PackedBatch
from mtl.models.kernels.calls import AttentionCall, KernelDropout, NormCall
from mtl.models.masks import pair_numbers, threshold_of
from mtl.models.native.parts import EncoderParts, LayerParts
from mtl.models.native.site_rows import SiteRows

# Kernels read hashes of pairs of features by whole vectors, past the last feature.
_FEATURE_STEP = 64


class KernelSteps:
    """The steps of one pass; first tokens are in the batch's order."""

    def __init__(self, library: ctypes.CDLL, parts: EncoderParts, batch: PackedBatch, sites: SiteRows) -> None:
        self._library, self._parts, self._sites = library, parts, sites
        self._starts = batch.sequence_offsets.contiguous()
        self._longest = int(batch.layout.sequence_lengths.max())

    @property
    def firsts(self) -> Tensor:
        """First tokens in the batch's order."""
        return self._starts[:-1]

    def in_batch_order(self, firsts_SD: Tensor) -> Tensor:
        """They are in it."""
        return firsts_SD

    def layer(self, number: int) -> "KernelLayerSteps":
        """Hashes (R,) for each site."""
        return self._steps(self._parts.layers[number], None)

    def last_layer_at_firsts(self) -> "KernelLayerSteps":
        """Hashes (S,) for each site."""
        return self._steps(self._parts.layers[-1], self.firsts)

    def _steps(self, layer: LayerParts, chosen: Tensor | None) -> "KernelLayerSteps":
        width = layer.contract.out_features
        attention = self._dropout(layer.attention_site, layer.attention_rate, layer.heads, self._longest, chosen)
        outputs = [
            self._dropout(dropout.site, dropout.p, 1, width, chosen)
            for dropout in (layer.attention_dropout, layer.output_dropout)
        ]
        return KernelLayerSteps(self._library, layer, self._starts, attention, *outputs)

    def _dropout(
        self, site: str, rate: float, heads: int, features: int, chosen: Tensor | None
    ) -> KernelDropout | None:
        rows = self._sites.of(site, rate)
        if rows is None:
            return None
        rows = rows if chosen is None else rows.index_select(0, chosen)
        room = -(-features // _FEATURE_STEP) * _FEATURE_STEP
        return KernelDropout(rows, pair_numbers(heads, room, rows.device), threshold_of(rate))


class KernelLayerSteps:
    """The steps of one layer, with the dropout of its three sites."""

    def __init__(
        self,
        library: ctypes.CDLL,
        layer: LayerParts,
        starts: Tensor,
        attention: KernelDropout | None,
        attention_output: KernelDropout | None,
        output: KernelDropout | None,
    ) -> None:
        self._library, self._layer, self._starts = library, layer, starts
        self._attention, self._attention_output, self._output = attention, attention_output, output

    def attend(self, projected_RE: Tensor) -> Tensor:
        """Every sequence's rows among themselves."""
        return self._attend(None, projected_RE)

    def attend_from_first(self, queries_SD: Tensor, projected_RE: Tensor) -> Tensor:
        """A query a sequence."""
        return self._attend(queries_SD, projected_RE)

    def attention_norm(self, output_RD: Tensor, residual_RD: Tensor) -> Tensor:
        """Dropout, residual and norm in one pass over the rows."""
        return self._norm(self._layer.attention_norm, self._attention_output, output_RD, residual_RD)

    def output_norm(self, output_RD: Tensor, residual_RD: Tensor) -> Tensor:
        """Dropout, residual and norm in one pass over the rows."""
        return self._norm(self._layer.output_norm, self._output, output_RD, residual_RD)

    def _attend(self, queries: Tensor | None, projected: Tensor) -> Tensor:
        arguments = (self._library, self._starts, self._layer.heads, self._attention, projected, queries)
        out: Tensor = _Attention.apply(*arguments)  # type: ignore[no-untyped-call]
        return out

    def _norm(self, norm: nn.LayerNorm, dropout: KernelDropout | None, inputs: Tensor, residual: Tensor) -> Tensor:
        arguments = (self._library, dropout, norm.eps, inputs, residual, norm.weight, norm.bias)
        out: Tensor = _ResidualNorm.apply(*arguments)  # type: ignore[no-untyped-call]
        return out


class _Attention(torch.autograd.Function):
    """Keeps what is projected; probabilities are computed again in backward."""

    @staticmethod
    def forward(
        ctx: Any,
        library: ctypes.CDLL,
        starts: Tensor,
        heads: int,
        dropout: KernelDropout | None,
        projected: Tensor,
        queries: Tensor | None,
    ) -> Tensor:
        """Queries of first tokens alone, or of all tokens among what is projected."""
        projected, queries = projected.contiguous(), None if queries is None else queries.contiguous()
        ctx.library, ctx.starts, ctx.heads, ctx.dropout = library, starts, heads, dropout
        ctx.save_for_backward(projected, queries)
        call = _attention_call(ctx, projected, queries)
        out = torch.empty_like(call.queries, memory_format=torch.contiguous_format)
        call.forward(library, out)
        out[int(call.query_starts[-1]) :] = 0
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        projected, queries = ctx.saved_tensors
        call = _attention_call(ctx, projected, queries)
        to_projected = torch.empty_like(projected)
        to_projected[int(ctx.starts[-1]) :] = 0
        parts = list(to_projected.chunk(3 if queries is None else 2, dim=1))
        to_queries = None if queries is None else torch.empty_like(queries)
        call.backward(ctx.library, gradient.contiguous(), parts if to_queries is None else [to_queries, *parts])
        return None, None, None, None, to_projected, to_queries


def _attention_call(ctx: Any, projected: Tensor, queries: Tensor | None) -> AttentionCall:
    starts: Tensor = ctx.starts
    if queries is None:
        queries, keys, values = projected.chunk(3, dim=1)
        return AttentionCall(queries, keys, values, starts, starts, ctx.heads, ctx.dropout)
    keys, values = projected.chunk(2, dim=1)
    return AttentionCall(queries, keys, values, torch.arange(len(starts)), starts, ctx.heads, ctx.dropout)


class _ResidualNorm(torch.autograd.Function):
    """Keeps the sum and its statistics; the mask is hashed again in backward."""

    @staticmethod
    def forward(
        ctx: Any,
        library: ctypes.CDLL,
        dropout: KernelDropout | None,
        epsilon: float,
        inputs: Tensor,
        residual: Tensor,
        weight: Tensor,
        bias: Tensor,
    ) -> Tensor:
        ctx.library, ctx.dropout, ctx.epsilon = library, dropout, epsilon
        call = NormCall(weight, bias, epsilon, dropout)
        out, *kept = call.forward(library, inputs.contiguous(), residual.contiguous())
        ctx.save_for_backward(weight, bias, *kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weight, bias, *kept = ctx.saved_tensors
        call = NormCall(weight, bias, ctx.epsilon, ctx.dropout)
        return None, None, None, *call.backward(ctx.library, gradient.contiguous(), *kept)
