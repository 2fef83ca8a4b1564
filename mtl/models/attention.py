"""Attention over packed sequences: each attends within itself, whatever else is in the batch.

Sequences of similar length are gathered into dense blocks, so that little work is wasted and no mask between
sequences is needed. Letters: S sequences, L length of a block, T tokens, H heads, Dh width of a head.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from mtl.data.blocks import Block
from mtl.models.dropout import DropoutContext, current_dropout, drop_attention

PACKED = "mtl_packed"
PADDED = "mtl_padded"


@dataclass
class AttentionContext:
    """The blocks of the running forward pass, packed or one padded block, and how often attention was called."""

    blocks: Sequence[Block]
    inverse: Tensor | None = None
    """(T,) place of every packed token among the places of all blocks in turn; None when padded."""
    calls: int = 0
    sites: dict[nn.Module, str] = field(default_factory=dict)


_CURRENT: ContextVar[AttentionContext | None] = ContextVar("attention", default=None)


@contextmanager
def attention_context(context: AttentionContext) -> Iterator[None]:
    """Make ``context`` the one that the attention functions read inside the block."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def _packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """The function that transformers calls: query, key and value (1, H, T, Dh); output (1, T, H, Dh)."""
    context = _context()
    heads, width = query.shape[1], query.shape[3]
    flat = [tensor[0].transpose(0, 1).reshape(-1, heads * width) for tensor in (query, key, value)]
    drops, site_key = _dropout_site(context, module, dropout)
    outputs = []
    for block in context.blocks:
        size, length = block.index.shape
        places = block.index.view(-1)
        q, k, v = (t.index_select(0, places).view(size, length, heads, width).transpose(1, 2) for t in flat)
        keys = None if drops is None else drops.token_keys[0][block.index]
        attended = _attend(q, k, v, block.valid, scaling, sliding_window, dropout, keys, site_key)
        outputs.append(attended.transpose(1, 2).reshape(size * length, heads * width))
    assert context.inverse is not None
    # The inverse reads valid places alone; choosing those by a mask would make a GPU wait in every layer.
    gathered = torch.cat(outputs).index_select(0, context.inverse)
    return gathered.view(1, -1, heads, width), None


def _padded_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """The same over padded sequences: query, key and value (S, H, L, Dh); output (S, L, H, Dh)."""
    context = _context()
    drops, site_key = _dropout_site(context, module, dropout)
    keys = None if drops is None else drops.token_keys
    valid = context.blocks[0].valid
    attended = _attend(query, key, value, valid, scaling, sliding_window, dropout, keys, site_key)
    return attended.transpose(1, 2), None


def _context() -> AttentionContext:
    context = _CURRENT.get()
    if context is None:
        raise RuntimeError("this encoder's attention was called outside the encoder that packs its batch")
    context.calls += 1
    return context


def _dropout_site(context: AttentionContext, module: nn.Module, rate: float) -> tuple[DropoutContext | None, int]:
    drops = current_dropout() if rate > 0.0 else None
    return drops, 0 if drops is None else drops.site_key(context.sites[module])


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    valid: Tensor | None,
    scaling: float | None,
    sliding_window: int | None,
    dropout: float,
    query_keys: Tensor | None,
    site_key: int,
) -> Tensor:
    """Softmax attention (S, H, L, Dh); ``valid`` (S, L) keys may be attended to; softmax in fp32.

    A window w, as transformers passes it, lets i see j where |i - j| <= w - 1.
    """
    length, width = query.shape[2], query.shape[3]
    scores = torch.matmul(query, key.transpose(2, 3)).float() * (width**-0.5 if scaling is None else scaling)
    if valid is not None:
        scores = scores.masked_fill(~valid[:, None, None, :], float("-inf"))
    if sliding_window is not None and length > sliding_window:
        places = torch.arange(length, device=query.device)
        outside = (places[:, None] - places[None, :]).abs() > sliding_window - 1
        # Queries past a short sequence's end may see no key at all; their rows are never read, but must not be NaN.
        scores = scores.masked_fill(outside & (places[:, None] != places[None, :]), float("-inf"))
        if valid is not None:
            scores = torch.where(valid[:, None, :, None], scores, torch.zeros_like(scores))
    probabilities = torch.softmax(scores, dim=-1).to(value.dtype)
    if query_keys is not None:
        probabilities = drop_attention(probabilities, dropout, query_keys, site_key)
    return torch.matmul(probabilities, value)


AttentionInterface.register(PACKED, _packed_attention)
AttentionInterface.register(PADDED, _padded_attention)
