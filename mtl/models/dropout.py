"""Dropout whose mask belongs to the example: a hash, not a draw.

An element is kept or dropped by a hash of (seed, step, site, slot in the whole update, sequence and position in the
example, feature), so the same example loses the same elements however the update is packed, padded, split into
micro-batches or dealt to ranks, and after a resume. Letters: S sequences, L padded length, T tokens, H heads.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.models.masks import KeepMask, keep_attention, keep_features, masked, mix32
from mtl.random_streams import stream_key


@dataclass(frozen=True)
class DropoutKey:
    """Names the random stream of one update: all masks of the update follow from it."""

    seed: int
    step: int


@dataclass
class DropoutContext:
    """What the dropout sites of one forward pass share.

    ``token_keys``: int32 key of every token, shaped like the leading dimensions of the hidden states, (1, T) packed or
    (S, L) padded. ``update_key``: 32 bits that name the update, for rows that belong to no example. ``calls`` counts
    how often a site was passed, so that a module used twice drops two patterns.
    """

    token_keys: Tensor
    update_key: int
    calls: Counter[str] = field(default_factory=Counter)

    def site_key(self, site: str) -> int:
        """32-bit key of the site's next use."""
        self.calls[site] += 1
        return _site_key(site, self.calls[site])


_CURRENT: ContextVar[DropoutContext | None] = ContextVar("dropout", default=None)


@contextmanager
def dropout_context(context: DropoutContext | None) -> Iterator[None]:
    """Make ``context`` the one that dropout sites read inside the block; None switches dropout off."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_dropout() -> DropoutContext | None:
    """The context of the forward pass that is running, None outside training."""
    return _CURRENT.get()


def packed_token_keys(batch: PackedBatch, key: DropoutKey) -> Tensor:
    """int32 keys (T,) of the batch's tokens: hashes of seed, step, slot, sequence within the example and position."""
    layout, device = batch.layout, batch.token_ids.device
    # Differences on the device, not copies of the layout: a GPU may wait for each copy.
    lengths, per_example = batch.sequence_offsets.diff(), batch.example_offsets.diff()
    sequences = int(layout.sequence_lengths.size)
    first = torch.repeat_interleave(batch.example_offsets[:-1], per_example, output_size=sequences)
    slots = torch.repeat_interleave(batch.slots, per_example, output_size=sequences)
    within = torch.arange(sequences, device=device) - first
    sequence_keys = mix32(mix32(slots + (stream_key(key.seed, "dropout", key.step) & 0xFFFFFFFF)) + within)
    token_keys = torch.repeat_interleave(sequence_keys, lengths, output_size=batch.tokens)
    return mix32(token_keys + batch.position_ids).to(torch.int32)


def example_keys(batch: PackedBatch, key: DropoutKey) -> Tensor:
    """int32 keys (B,) of the batch's examples, for dropout after pooling."""
    return mix32(batch.slots + (stream_key(key.seed, "pooled dropout", key.step) & 0xFFFFFFFF)).to(torch.int32)


def packed_dropout(batch: PackedBatch, key: DropoutKey) -> DropoutContext:
    """The context of a packed forward pass over ``batch``."""
    update_key = stream_key(key.seed, "dropout of shared rows", key.step) & 0xFFFFFFFF
    return DropoutContext(packed_token_keys(batch, key)[None], update_key)


def drop(inputs: Tensor, rate: float, row_keys: Tensor, site_key: int) -> Tensor:
    """``inputs (..., F)`` with each element zeroed with probability ``rate``, the rest scaled by 1 / (1 - rate).

    ``row_keys`` is int32, of the leading dimensions.
    """
    return drop_by(inputs, keep_features(row_keys, inputs.shape[-1], rate, site_key))


def drop_attention(probabilities: Tensor, rate: float, query_keys: Tensor, site_key: int) -> Tensor:
    """Attention probabilities (S, H, Lq, Lk) with elements dropped as in :func:`drop`; ``query_keys`` (S, Lq)."""
    _, heads, _, keys = probabilities.shape
    return drop_by(probabilities, keep_attention(query_keys, heads, keys, rate, site_key))


def drop_by(inputs: Tensor, keep: KeepMask) -> Tensor:
    """``inputs`` with what the mask drops zeroed and the rest scaled."""
    dropped: Tensor = _Drop.apply(inputs, keep)  # type: ignore[no-untyped-call]
    return dropped


class _Drop(torch.autograd.Function):
    """The scale comes last: rounded to bf16 by itself, 1 / 0.9 would be 0.16% too small at every site."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, keep: KeepMask) -> Tensor:
        ctx.keep = keep
        return masked(inputs, keep).mul_(keep.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return masked(gradient, ctx.keep).mul_(ctx.keep.scale), None


class KeyedDropout(nn.Module):
    """Stands in for ``nn.Dropout`` inside a Hugging Face encoder; does nothing in evaluation.

    Input is either per token, its leading dimensions those of the hidden states, or attention probabilities
    (S, H, L, L), or belongs to no example (relative position embeddings) and is then keyed on the update and its
    rows' places.
    """

    def __init__(self, rate: float, site: str) -> None:
        super().__init__()
        self.p = rate
        self.site = site

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return inputs
        context = current_dropout()
        if context is None:
            raise RuntimeError(f"dropout site {self.site} ran in training mode outside a dropout context")
        keys, site_key = context.token_keys, context.site_key(self.site)
        if inputs.shape[:-1] == keys.shape:
            return drop(inputs, self.p, keys, site_key)
        if inputs.dim() == 4 and (inputs.shape[0], inputs.shape[2]) == tuple(keys.shape):
            return drop_attention(inputs, self.p, keys, site_key)
        rows = torch.arange(inputs.shape[:-1].numel(), device=inputs.device).view(inputs.shape[:-1])
        return drop(inputs, self.p, mix32(rows + context.update_key).to(torch.int32), site_key)


def replace_dropout(model: nn.Module) -> None:
    """Put a :class:`KeyedDropout` in the place of every ``nn.Dropout``, its site the module's path."""
    for path, module in list(model.named_modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Dropout):
                site = f"{path}.{name}".lstrip(".")
                setattr(module, name, KeyedDropout(child.p, site).train(child.training))


@lru_cache(maxsize=4096)
def _site_key(site: str, call: int) -> int:
    return stream_key(0, "dropout site", site, call) & 0xFFFFFFFF
