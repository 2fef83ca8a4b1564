"""Attention over sequences grouped by length, from one fused projection. Reference: ``_attend`` of the packed way.

Letters: T tokens, P places of all blocks, S sequences, L length of a block, H heads, Dh width of a head, D = H Dh.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mtl.data.blocks import Block, Blocks
from mtl.models.dropout import DropoutContext, KeepMask, keep_attention, masked


@dataclass(frozen=True)
class Grouping:
    """How packed tokens lie in the blocks of a batch, and back.

    ``places`` (P,) tokens by place; ``inverse`` (T,) places by token; ``valid`` (P, 1) is 0 at places past a sequence's
    end, None where there are none. ``firsts`` (S,) is each sequence's first token in the order of the blocks, and
    ``unsorted`` (S,) puts such rows back into the batch's order.
    """

    blocks: tuple[Block, ...]
    places: Tensor
    inverse: Tensor
    valid: Tensor | None
    firsts: Tensor
    unsorted: Tensor


def grouping(batch_blocks: Blocks, sequence_starts: Tensor, dtype: torch.dtype) -> Grouping:
    """The grouping of a batch's blocks; ``dtype`` is that of ``valid``."""
    blocks = batch_blocks.blocks
    places = torch.cat([block.index.view(-1) for block in blocks])
    valid = None
    if any(block.valid is not None for block in blocks):
        parts = [torch.ones_like(b.index, dtype=dtype) if b.valid is None else b.valid.to(dtype) for b in blocks]
        valid = torch.cat([part.view(-1) for part in parts])[:, None]
    firsts = torch.cat([block.index[:, 0] for block in blocks])
    unsorted = torch.searchsorted(sequence_starts, firsts).argsort()
    return Grouping(blocks, places, batch_blocks.inverse, valid, firsts, unsorted)


def attend(
    projected_TE: Tensor, groups: Grouping, heads: int, drops: DropoutContext | None, rate: float, site_key: int
) -> Tensor:
    """Attended values (T, D) from queries, keys and values side by side (T, 3 D), every sequence for itself."""
    gathered = _ToBlocks.apply(projected_TE, groups)  # type: ignore[no-untyped-call]
    outputs = []
    for block, part in zip(groups.blocks, _split(gathered, groups), strict=True):
        keys = None if drops is None else drops.token_keys[0][block.index]
        keep = None if keys is None else keep_attention(keys, heads, block.index.shape[1], rate, site_key)
        outputs.append(_SelfAttention.apply(part, block, heads, keep))  # type: ignore[no-untyped-call]
    out: Tensor = _FromBlocks.apply(torch.cat(outputs), groups)  # type: ignore[no-untyped-call]
    return out


def attend_from_first(
    queries_SD: Tensor,
    projected_TE: Tensor,
    groups: Grouping,
    heads: int,
    drops: DropoutContext | None,
    rate: float,
    site_key: int,
) -> Tensor:
    """The same for each sequence's first token alone: queries (S, D) in the blocks' order, keys and values (T, 2 D)."""
    gathered = _ToBlocks.apply(projected_TE, groups)  # type: ignore[no-untyped-call]
    sizes = [block.index.shape[0] for block in groups.blocks]
    outputs = []
    for block, query, part in zip(groups.blocks, torch.split(queries_SD, sizes), _split(gathered, groups), strict=True):
        keys = None if drops is None else drops.token_keys[0][block.index[:, :1]]
        keep = None if keys is None else keep_attention(keys, heads, block.index.shape[1], rate, site_key)
        outputs.append(_FirstAttention.apply(query, part, block, heads, keep))  # type: ignore[no-untyped-call]
    return torch.cat(outputs)


def _split(gathered: Tensor, groups: Grouping) -> tuple[Tensor, ...]:
    return torch.split(gathered, [block.index.numel() for block in groups.blocks])


class _ToBlocks(torch.autograd.Function):
    """Rows by place; backward takes each token's row from its own place. Gradients of places past an end are zero."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, groups: Grouping) -> Tensor:
        ctx.groups = groups
        return rows.index_select(0, groups.places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.groups.inverse), None


class _FromBlocks(torch.autograd.Function):
    """Rows by token; backward gives places past an end, which no token reads, a gradient of zero."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, groups: Grouping) -> Tensor:
        ctx.groups = groups
        return rows.index_select(0, groups.inverse)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        spread = gradient.index_select(0, ctx.groups.places)
        return (spread if ctx.groups.valid is None else spread.mul_(ctx.groups.valid)), None


class _SelfAttention(torch.autograd.Function):
    """(S L, 3 D) to (S L, D)."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, block: Block, heads: int, keep: KeepMask | None) -> Tensor:
        size, length = block.index.shape
        query, key, value = _by_head(projected, 3, size, length, heads)
        out, probabilities, kept = _forward(query, key, value, block, heads, keep)
        ctx.save_for_backward(query, key, value, probabilities, kept)
        ctx.shape, ctx.keep = (size, length, heads), keep
        return _side_by_side([out], *ctx.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        [gradient] = _by_head(gradient, 1, *ctx.shape)
        return _side_by_side(_backward(gradient, ctx.saved_tensors, ctx.keep), *ctx.shape), None, None, None


class _FirstAttention(torch.autograd.Function):
    """(S, D) and (S L, 2 D) to (S, D)."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, projected: Tensor, block: Block, heads: int, keep: KeepMask | None
    ) -> Tensor:
        size, length = block.index.shape
        [query] = _by_head(queries, 1, size, 1, heads)
        key, value = _by_head(projected, 2, size, length, heads)
        out, probabilities, kept = _forward(query, key, value, block, heads, keep)
        ctx.save_for_backward(query, key, value, probabilities, kept)
        ctx.shape, ctx.keep = (size, length, heads), keep
        return _side_by_side([out], size, 1, heads)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        size, length, heads = ctx.shape
        [gradient] = _by_head(gradient, 1, size, 1, heads)
        to_query, *others = _backward(gradient, ctx.saved_tensors, ctx.keep)
        to_queries = _side_by_side([to_query], size, 1, heads)
        return to_queries, _side_by_side(others, size, length, heads), None, None, None


def _forward(
    query: Tensor, key: Tensor, value: Tensor, block: Block, heads: int, keep: KeepMask | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (S H, Lq, Dh), the probabilities, and those that dropout kept, unscaled."""
    scores = torch.bmm(query, key.transpose(1, 2)).mul_(query.shape[-1] ** -0.5)
    if block.valid is not None:
        past_end = torch.zeros_like(block.valid, dtype=scores.dtype).masked_fill_(~block.valid, float("-inf"))
        scores.view(block.index.shape[0], heads, *scores.shape[1:]).add_(past_end[:, None, None, :])
    probabilities = torch.softmax(scores, dim=-1)
    if keep is None:
        return torch.bmm(probabilities, value), probabilities, probabilities
    kept = masked(probabilities, keep)
    return torch.bmm(kept, value).mul_(keep.scale), probabilities, kept


def _backward(gradient: Tensor, saved: Sequence[Tensor], keep: KeepMask | None) -> list[Tensor]:
    """Gradients of query, key and value from that of the outputs and what forward saved."""
    query, key, value, probabilities, kept = saved
    if keep is not None:
        gradient = gradient * keep.scale
    to_value = torch.bmm(kept.transpose(1, 2), gradient)
    to_probabilities = torch.bmm(gradient, value.transpose(1, 2))
    if keep is not None:
        to_probabilities = masked(to_probabilities, keep)
    to_scores = torch._softmax_backward_data(to_probabilities, probabilities, -1, probabilities.dtype)
    to_scores.mul_(query.shape[-1] ** -0.5)
    return [torch.bmm(to_scores, key), torch.bmm(to_scores.transpose(1, 2), query), to_value]


def _by_head(rows: Tensor, parts: int, size: int, length: int, heads: int) -> tuple[Tensor, ...]:
    """(S L, parts D) to ``parts`` tensors (S H, L, Dh)."""
    split = rows.view(size, length, parts, heads, -1).permute(2, 0, 3, 1, 4).contiguous()
    return split.view(parts, size * heads, length, -1).unbind(0)


def _side_by_side(parts: list[Tensor], size: int, length: int, heads: int) -> Tensor:
    """The way back: ``parts`` tensors (S H, L, Dh) to (S L, parts D)."""
    if len(parts) == 1:
        return parts[0].view(size, heads, length, -1).transpose(1, 2).reshape(size * length, -1)
    joined = torch.stack([part.view(size, heads, length, -1).transpose(1, 2) for part in parts], dim=2)
    return joined.view(size * length, -1)
