"""The sum of word, type and position embeddings. Reference: ``torch.nn.functional.embedding`` of each, added up.

Letters: T tokens, V entries of a table, E its width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mtl.models.kept_gradient import KeptGradient, scattered


def summed_embeddings(
    words: nn.Embedding,
    types: nn.Embedding,
    positions: nn.Embedding,
    ids: dict[str, Tensor],
    kept: KeptGradient,
) -> Tensor:
    """Sums (T, E); ``ids`` (T,) under the names of Hugging Face's arguments, ``kept`` the gradient of the words.

    As in :class:`torch.nn.Embedding`, the entry for padding gets no gradient.
    """
    out: Tensor = _Summed.apply(  # type: ignore[no-untyped-call]
        words.weight,
        types.weight,
        positions.weight,
        (ids["input_ids"], ids["token_type_ids"], ids["position_ids"]),
        (words.padding_idx, types.padding_idx, positions.padding_idx),
        kept,
    )
    return out


class _Summed(torch.autograd.Function):
    """Three look-ups, one gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        words: Tensor,
        types: Tensor,
        positions: Tensor,
        ids: tuple[Tensor, Tensor, Tensor],
        paddings: tuple[int | None, ...],
        kept: KeptGradient,
    ) -> Tensor:
        ctx.ids, ctx.paddings, ctx.kept = ids, paddings, kept
        ctx.sizes = (types.shape[0], positions.shape[0])
        summed = words.index_select(0, ids[0])
        # In the order of Hugging Face's own sum, so that both are equal to the bit.
        for table, chosen in ((types, ids[1]), (positions, ids[2])):
            summed += table.index_select(0, chosen)
        return summed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows = [_without_padding(gradient, *pair) for pair in zip(ctx.ids, ctx.paddings, strict=True)]
        others = [scattered(part, ids, size) for part, ids, size in zip(rows[1:], ctx.ids[1:], ctx.sizes, strict=True)]
        return ctx.kept.of(rows[0], ctx.ids[0]), *others, None, None, None


def _without_padding(gradient: Tensor, ids: Tensor, padding: int | None) -> Tensor:
    return gradient if padding is None else gradient.masked_fill((ids == padding)[:, None], 0.0)
