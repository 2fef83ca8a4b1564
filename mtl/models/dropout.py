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
from typing import Any

import torch
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.random_streams import stream_key

_LEVELS = 2**16


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
        return stream_key(0, "dropout site", site, self.calls[site]) & 0xFFFFFFFF


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
    sequence_keys = _mix32(_mix32(slots + (stream_key(key.seed, "dropout", key.step) & 0xFFFFFFFF)) + within)
    token_keys = torch.repeat_interleave(sequence_keys, lengths, output_size=batch.tokens)
    return _mix32(token_keys + batch.position_ids).to(torch.int32)


def example_keys(batch: PackedBatch, key: DropoutKey) -> Tensor:
    """int32 keys (B,) of the batch's examples, for dropout after pooling."""
    return _mix32(batch.slots + (stream_key(key.seed, "pooled dropout", key.step) & 0xFFFFFFFF)).to(torch.int32)


def packed_dropout(batch: PackedBatch, key: DropoutKey) -> DropoutContext:
    """The context of a packed forward pass over ``batch``."""
    update_key = stream_key(key.seed, "dropout of shared rows", key.step) & 0xFFFFFFFF
    return DropoutContext(packed_token_keys(batch, key)[None], update_key)


@dataclass(frozen=True)
class KeepMask:
    """Which elements stay: int16, all bits set where one is kept and none where it is dropped.

    ``scale`` is what kept elements are multiplied by, 1 / (1 - rate).
    """

    bits: Tensor
    scale: float


def keep_features(row_keys: Tensor, features: int, rate: float, site_key: int) -> KeepMask:
    """The mask (..., features) of rows with these int32 keys. The rate is rounded to a multiple of 2^-16."""
    rows = _mix32(row_keys.long() ^ site_key).to(torch.int32)
    return _keep(rows[..., None], torch.zeros((), dtype=torch.int64, device=rows.device), features, rate)


def keep_attention(query_keys: Tensor, heads: int, keys: int, rate: float, site_key: int) -> KeepMask:
    """The mask (S, H, Lq, Lk) of attention probabilities; ``query_keys`` (S, Lq)."""
    rows = _mix32(query_keys.long() ^ site_key).to(torch.int32)
    head_starts = torch.arange(heads, device=rows.device) << 20
    return _keep(rows[:, None, :, None], head_starts[:, None, None], keys, rate)


def masked(inputs: Tensor, keep: KeepMask) -> Tensor:
    """``inputs`` with dropped elements zeroed, kept ones not scaled; the mask is of as many elements.

    Bits are cleared: a product with a mask of booleans costs several times as much on a CPU.
    """
    bits = keep.bits.reshape(inputs.shape)
    if inputs.dtype == torch.float32:
        # Widening repeats the sign, so it keeps all bits set or none.
        return (inputs.view(torch.int32) & bits.to(torch.int32)).view(torch.float32)
    return (inputs.view(torch.int16) & bits).view(inputs.dtype)


def drop(inputs: Tensor, rate: float, row_keys: Tensor, site_key: int) -> Tensor:
    """``inputs (..., F)`` with each element zeroed with probability ``rate``, the rest scaled by 1 / (1 - rate).

    ``row_keys`` is int32, of the leading dimensions.
    """
    dropped: Tensor = _Drop.apply(inputs, keep_features(row_keys, inputs.shape[-1], rate, site_key))  # type: ignore[no-untyped-call]
    return dropped


def drop_attention(probabilities: Tensor, rate: float, query_keys: Tensor, site_key: int) -> Tensor:
    """Attention probabilities (S, H, Lq, Lk) with elements dropped as in :func:`drop`; ``query_keys`` (S, Lq)."""
    _, heads, _, keys = probabilities.shape
    keep = keep_attention(query_keys, heads, keys, rate, site_key)
    dropped: Tensor = _Drop.apply(probabilities, keep)  # type: ignore[no-untyped-call]
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
        return drop(inputs, self.p, _mix32(rows + context.update_key).to(torch.int32), site_key)


def replace_dropout(model: nn.Module) -> None:
    """Put a :class:`KeyedDropout` in the place of every ``nn.Dropout``, its site the module's path."""
    for path, module in list(model.named_modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Dropout):
                site = f"{path}.{name}".lstrip(".")
                setattr(module, name, KeyedDropout(child.p, site).train(child.training))


def _keep(rows: Tensor, group_starts: Tensor, features: int, rate: float) -> KeepMask:
    """The mask over ``features`` of every row of every group: ``rows`` and ``group_starts`` broadcast.

    One 32-bit hash decides two neighbouring features by its halves.
    """
    threshold = round(rate * _LEVELS)
    # Numbers are the same for every row: a head is a group, two features or key positions a pair.
    numbers = group_starts + torch.arange((features + 1) // 2, device=rows.device)
    words = _scramble_(rows + _mix32(numbers + 1).to(torch.int32))
    halves = words.view(torch.int16)[..., :features]
    least_kept = threshold - _LEVELS // 2
    if threshold == 0:
        return KeepMask(torch.full_like(halves, -1), 1.0)
    # -1 where the half is large enough to be kept, else 0; no step of it can overflow.
    bits = (least_kept - 1) - halves.clamp(least_kept - 1, least_kept)
    return KeepMask(bits, _LEVELS / (_LEVELS - threshold))


def _mix32(values: Tensor) -> Tensor:
    """Non-negative int64 in, 32-bit hash out as int64: the finaliser ``lowbias32`` (Wellons 2018)."""
    values = values & 0xFFFFFFFF
    values = ((values ^ (values >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    values = ((values ^ (values >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return values ^ (values >> 16)


def _scramble_(words: Tensor) -> Tensor:
    """int32 words hashed in place; multiplication wraps, shifts bring in zeros.

    The same finaliser without its last step. Sums of two hashes come in, and without that step pairs of features, pairs
    of rows and their rectangles are uncorrelated still; with one multiplication less they are not.
    """
    words ^= (words >> 16) & 0xFFFF
    words *= 0x7FEB352D
    words ^= (words >> 15) & 0x1FFFF
    words *= 0x846CA68B - 2**32
    return words
