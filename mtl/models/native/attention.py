"""Attention over sequences grouped by length, from one fused projection. Reference: ``_attend`` of the packed way.

Letters: T tokens, R rows that the layers run on (T and some filler), P places of all blocks and one more for the
filler, S sequences, L length of a block, H heads, Dh width of a head, D = H Dh.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mtl.data.blocks import Block, Blocks
from mtl.models.masks import KeepMask, masked

_LONGEST_IN_FP32 = 64


@dataclass(frozen=True)
class Grouping:
    """How the rows of a batch lie in its blocks, and back.

    ``places`` (P,) rows by place: those past a sequence's end and the last one hold the first filler row. ``inverse``
    (R,) places by row: filler is at the last one. So nothing but zeros reaches the gradient of either. ``past_ends``
    (S H, 1, L) for each block is 0 at keys that may be attended to and minus infinity past their sequence's end; None
    for a block without such. ``dtypes``: what each block is computed in. ``firsts`` (S,) is each sequence's first row
    in the order of the blocks, and ``unsorted`` (S,) puts such rows back into the batch's order.
    """

    blocks: tuple[Block, ...]
    places: Tensor
    inverse: Tensor
    past_ends: tuple[Tensor | None, ...]
    dtypes: tuple[torch.dtype, ...]
    firsts: Tensor
    unsorted: Tensor

    def split(self, by_place: Tensor) -> tuple[Tensor, ...]:
        """What stands at the places (P, ...) of each block (S L, ...), and at last of the filler."""
        return by_place.split_with_sizes([*(block.index.numel() for block in self.blocks), 1])

    def split_sequences(self, by_sequence: Tensor) -> tuple[Tensor, ...]:
        """Rows of sequences in the order of the blocks (S, ...), by block."""
        return by_sequence.split_with_sizes([block.index.shape[0] for block in self.blocks])


def grouping(batch_blocks: Blocks, sequence_starts: Tensor, rows: int, heads: int, dtype: torch.dtype) -> Grouping:
    """The grouping of a batch's blocks among ``rows``, more than it has tokens; ``dtype`` is that of the layers."""
    blocks, inverse = batch_blocks.blocks, batch_blocks.inverse
    tokens = inverse.shape[0]
    places = [block.index if block.valid is None else block.index.where(block.valid, tokens) for block in blocks]
    by_place = torch.cat([*(part.view(-1) for part in places), inverse.new_full((1,), tokens)])
    by_row = torch.cat([inverse, inverse.new_full((rows - tokens,), by_place.shape[0] - 1)])
    firsts = torch.cat([block.index[:, 0] for block in blocks])
    unsorted = torch.searchsorted(sequence_starts, firsts).argsort()
    dtypes = tuple(_block_dtype(block, dtype) for block in blocks)
    past_ends = tuple(_past_end(block, heads, chosen) for block, chosen in zip(blocks, dtypes, strict=True))
    return Grouping(blocks, by_place, by_row, past_ends, dtypes, firsts, unsorted)


def _block_dtype(block: Block, dtype: torch.dtype) -> torch.dtype:
    """fp32 for short sequences on a CPU: its bf16 products are compiled for every shape, and no faster at these."""
    short = block.index.shape[1] <= _LONGEST_IN_FP32
    return torch.float32 if short and block.index.device.type == "cpu" else dtype


def _past_end(block: Block, heads: int, dtype: torch.dtype) -> Tensor | None:
    if block.valid is None:
        return None
    past_end = torch.zeros_like(block.valid, dtype=dtype).masked_fill_(~block.valid, float("-inf"))
    return past_end.repeat_interleave(heads, dim=0)[:, None]


def attend(projected_RE: Tensor, groups: Grouping, heads: int, keeps: Sequence[KeepMask | None]) -> Tensor:
    """Attended values (R, D) from queries, keys and values side by side (R, 3 D), every sequence for itself.

    ``keeps`` holds the dropout mask (S, H, L, L) of each block. Filler gets zeros.
    """
    out: Tensor = _Attention.apply(groups, heads, keeps, projected_RE)  # type: ignore[no-untyped-call]
    return out


def attend_from_first(
    queries_SD: Tensor, projected_RE: Tensor, groups: Grouping, heads: int, keeps: Sequence[KeepMask | None]
) -> Tensor:
    """The same for each sequence's first token alone: queries (S, D) in the blocks' order, keys and values (R, 2 D)."""
    out: Tensor = _Attention.apply(groups, heads, keeps, projected_RE, queries_SD)  # type: ignore[no-untyped-call]
    return out


class _Attention(torch.autograd.Function):
    """All blocks of a layer: gathered from rows, attended block by block, and brought back."""

    @staticmethod
    def forward(
        ctx: Any,
        groups: Grouping,
        heads: int,
        keeps: Sequence[KeepMask | None],
        projected: Tensor,
        queries: Tensor | None = None,
    ) -> Tensor:
        """Queries of first tokens alone, or of all tokens among what is projected."""
        ctx.groups, ctx.heads, ctx.keeps = groups, heads, keeps
        gathered = groups.split(projected.index_select(0, groups.places))
        asked = None if queries is None else groups.split_sequences(queries)
        width = projected.shape[1] // 3 if queries is None else queries.shape[1]
        attended = projected.new_empty((groups.places if queries is None else groups.firsts).shape[0], width)
        outputs = groups.split(attended) if queries is None else groups.split_sequences(attended)
        saved: list[Tensor] = []
        for number, (block, dtype) in enumerate(zip(groups.blocks, groups.dtypes, strict=True)):
            own = [gathered[number]] if asked is None else [asked[number], gathered[number]]
            size = block.index.shape[0]
            query, key, value = (part for rows in own for part in _by_head(rows, size, heads, width, dtype))
            out, probabilities, kept = _forward(query, key, value, groups.past_ends[number], keeps[number])
            _to_rows(outputs[number], [out], size, heads)
            # Without a backward pass no block's parts outlive the next one's.
            if any(ctx.needs_input_grad):
                saved += [query, key, value, probabilities, kept]
        ctx.save_for_backward(*saved)
        if queries is not None:
            return attended
        attended[-1] = 0
        return attended.index_select(0, groups.inverse)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        groups, heads, saved = ctx.groups, ctx.heads, ctx.saved_tensors
        whole, width = len(ctx.needs_input_grad) == 4, gradient.shape[1]
        spread = groups.split(gradient.index_select(0, groups.places)) if whole else groups.split_sequences(gradient)
        to_projected = gradient.new_empty(groups.places.shape[0], (3 if whole else 2) * width)
        to_projected[-1] = 0
        parts = groups.split(to_projected)
        to_queries = [] if whole else [gradient.new_empty(gradient.shape)]
        asked = [groups.split_sequences(each) for each in to_queries]
        for number, (block, dtype) in enumerate(zip(groups.blocks, groups.dtypes, strict=True)):
            size = block.index.shape[0]
            [to_output] = _by_head(spread[number], size, heads, width, dtype)
            found = _backward(to_output, saved[5 * number : 5 * number + 5], ctx.keeps[number])
            for part in asked:
                _to_rows(part[number], [found.pop(0)], size, heads)
            _to_rows(parts[number], found, size, heads)
        return None, None, None, to_projected.index_select(0, groups.inverse), *to_queries


def _forward(
    query: Tensor, key: Tensor, value: Tensor, past_end: Tensor | None, keep: KeepMask | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (S H, Lq, Dh), the probabilities, and those that dropout kept, unscaled."""
    scores = _product(query, key.transpose(1, 2), query.shape[-1] ** -0.5, past_end)
    probabilities = torch.softmax(scores, dim=-1)
    if keep is None:
        return torch.bmm(probabilities, value), probabilities, probabilities
    kept = masked(probabilities, keep)
    return _product(kept, value, keep.scale), probabilities, kept


def _backward(gradient: Tensor, saved: Sequence[Tensor], keep: KeepMask | None) -> list[Tensor]:
    """Gradients of query, key and value from that of the outputs and what forward saved."""
    query, key, value, probabilities, kept = saved
    scale = 1.0 if keep is None else keep.scale
    to_value = _product(kept.transpose(1, 2), gradient, scale)
    to_probabilities = _product(gradient, value.transpose(1, 2), scale)
    if keep is not None:
        to_probabilities = masked(to_probabilities, keep)
    to_scores = torch._softmax_backward_data(to_probabilities, probabilities, -1, probabilities.dtype)
    factor = query.shape[-1] ** -0.5
    return [_product(to_scores, key, factor), _product(to_scores.transpose(1, 2), query, factor), to_value]


def _product(first: Tensor, second: Tensor, factor: float, added: Tensor | None = None) -> Tensor:
    """``added + factor (first @ second)`` by matrix, rounded once."""
    if added is None:
        # With a beta of zero it is not read.
        return torch.baddbmm(first.new_empty(()), first, second, beta=0.0, alpha=factor)
    return torch.baddbmm(added, first, second, alpha=factor)


def _by_head(rows: Tensor, size: int, heads: int, width: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """(S L, n D) to n tensors (S H, L, Dh) of ``dtype``."""
    seen = _seen_by_head(rows, rows.shape[1] // width, size, heads)
    split = torch.empty(seen.shape, dtype=dtype, device=rows.device).copy_(seen)
    return split.view(seen.shape[0], size * heads, *seen.shape[3:]).unbind(0)


def _to_rows(rows: Tensor, parts: Sequence[Tensor], size: int, heads: int) -> None:
    """The way back: n tensors (S H, L, Dh) into ``rows`` (S L, n D)."""
    for seen, part in zip(_seen_by_head(rows, len(parts), size, heads), parts, strict=True):
        seen.copy_(part.view(seen.shape))


def _seen_by_head(rows: Tensor, parts: int, size: int, heads: int) -> Tensor:
    """(S L, n D) seen as (n, S, H, L, Dh)."""
    return rows.view(size, rows.shape[0] // size, parts, heads, -1).permute(2, 0, 3, 1, 4)
