"""Masks of dropout as bits, hashed from keys of rows and numbers of features.

Letters: S sequences, L padded length, H heads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from mtl.runtime.device import to_device

_LEVELS = 2**16
# Half a megabyte: on a CPU all steps of the hash find them in a core's own cache.
_WORDS_AT_ONCE = 2**17
# Tensors of the words' own type: a number of Python is made into one, and converted, in every operation.
_SIXTEEN, _FIFTEEN, _LOW_SIXTEEN, _LOW_SEVENTEEN, _FIRST_FACTOR, _SECOND_FACTOR = torch.tensor(
    [16, 15, 0xFFFF, 0x1FFFF, 0x7FEB352D, 0x846CA68B - 2**32], dtype=torch.int32
).unbind()


@dataclass(frozen=True)
class KeepMask:
    """Which elements stay: int16, all bits set where one is kept and none where it is dropped.

    ``scale`` is what kept elements are multiplied by, 1 / (1 - rate).
    """

    bits: Tensor
    scale: float


@dataclass(frozen=True)
class Threshold:
    """Elements are kept whose half of a hash is ``least`` or more as a signed number, and multiplied by ``scale``."""

    least: int
    scale: float


@dataclass(frozen=True)
class MaskedPlace:
    """What a mask is wanted for: hashes of its rows and numbers of its pairs of features, both int32, and the rate.

    Rows and pairs broadcast to ``shape``, the mask's with the last dimension counted in pairs; ``features`` is that
    dimension.
    """

    rows: Tensor
    pairs: Tensor
    shape: tuple[int, ...]
    features: int
    rate: float


def features_place(rows: Tensor, features: int, rate: float) -> MaskedPlace:
    """For rows (...,) of hidden states with these hashes; the mask is (..., features)."""
    pairs = pair_numbers(1, features, rows.device)[0]
    return MaskedPlace(rows[..., None], pairs, (*rows.shape, pairs.shape[0]), features, rate)


def attention_place(rows: Tensor, heads: int, keys: int, rate: float) -> MaskedPlace:
    """For attention probabilities of queries (S, Lq) with these hashes; the mask is (S, heads, Lq, keys)."""
    pairs = pair_numbers(heads, keys, rows.device)
    shape = (rows.shape[0], heads, rows.shape[1], pairs.shape[1])
    return MaskedPlace(rows[:, None, :, None], pairs[:, None], shape, keys, rate)


@lru_cache(maxsize=256)
def pair_numbers(heads: int, features: int, device: torch.device) -> Tensor:
    """Hashes (H, pairs), the same for every row: a head is a group, two features or key positions a pair."""
    starts = torch.arange(heads, device=device)[:, None] << 20
    return mix32(starts + torch.arange((features + 1) // 2, device=device) + 1).to(torch.int32)


def threshold_of(rate: float) -> Threshold:
    """The threshold for a rate, rounded to a multiple of 2^-16."""
    dropped = round(rate * _LEVELS)
    return Threshold(dropped - _LEVELS // 2, _LEVELS / (_LEVELS - dropped))


def site_rows(row_keys: Tensor, site_keys: Sequence[int]) -> Tensor:
    """Hashes (sites, ...) of rows with these int32 keys, for each of the sites."""
    sites = _site_keys(tuple(site_keys), row_keys.device).view(-1, *[1] * row_keys.dim())
    return mix32(row_keys.long() ^ sites).to(torch.int32)


def keep_masks(places: Sequence[MaskedPlace]) -> list[KeepMask]:
    """The masks of several places, hashed together: many small ones would cost more in calls than in work.

    One 32-bit hash decides two neighbouring features by its halves. Rates are rounded to multiples of 2^-16.
    """
    sizes = [math.prod(place.shape) for place in places]
    words = torch.empty(sum(sizes), dtype=torch.int32, device=places[0].rows.device)
    parts = words.split_with_sizes(sizes)
    for part, place in zip(parts, places, strict=True):
        torch.add(place.rows, place.pairs, out=part.view(place.shape))
    # A GPU has no such cache to use, and every stretch would be launches of its own.
    for stretch in torch.split(words, _WORDS_AT_ONCE) if words.device.type == "cpu" else [words]:
        _scramble_(stretch)
    return [_keep_mask(part, place) for part, place in zip(parts, places, strict=True)]


def _keep_mask(words: Tensor, place: MaskedPlace) -> KeepMask:
    """The mask that the place's hashed words decide; their memory becomes its bits."""
    threshold = threshold_of(place.rate)
    bits = _all_bits_or_none_(words.view(torch.int16), threshold.least)
    shaped = bits.view(*place.shape[:-1], 2 * place.shape[-1])
    even = place.features == shaped.shape[-1]
    return KeepMask(shaped if even else shaped[..., : place.features], threshold.scale)


def keep_features(row_keys: Tensor, features: int, rate: float, site_key: int) -> KeepMask:
    """The mask (..., features) of rows with these int32 keys."""
    [keep] = keep_masks([features_place(site_rows(row_keys, [site_key])[0], features, rate)])
    return keep


def keep_attention(query_keys: Tensor, heads: int, keys: int, rate: float, site_key: int) -> KeepMask:
    """The mask (S, H, Lq, Lk) of attention probabilities; ``query_keys`` (S, Lq)."""
    [keep] = keep_masks([attention_place(site_rows(query_keys, [site_key])[0], heads, keys, rate)])
    return keep


def masked(inputs: Tensor, keep: KeepMask) -> Tensor:
    """``inputs`` with dropped elements zeroed, kept ones not scaled; the mask is of as many elements.

    Bits are cleared: a product with a mask of booleans costs several times as much on a CPU.
    """
    bits = keep.bits.reshape(inputs.shape)
    if inputs.dtype == torch.float32:
        # Widening repeats the sign, so it keeps all bits set or none.
        return (inputs.view(torch.int32) & bits.to(torch.int32)).view(torch.float32)
    return (inputs.view(torch.int16) & bits).view(inputs.dtype)


def mix32(values: Tensor) -> Tensor:
    """Non-negative int64 in, 32-bit hash out as int64: the finaliser ``lowbias32`` (Wellons 2018)."""
    values = values & 0xFFFFFFFF
    values = ((values ^ (values >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    values = ((values ^ (values >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return values ^ (values >> 16)


def _all_bits_or_none_(halves: Tensor, least: int) -> Tensor:
    """In place: -1 where the half is large enough to be kept, else 0."""
    if least == -_LEVELS // 2:
        return halves.fill_(-1)
    # No step of it can overflow.
    halves.clamp_(least - 1, least)
    return torch.sub(halves.new_full((), least - 1), halves, out=halves)


@lru_cache(maxsize=256)
def _site_keys(site_keys: tuple[int, ...], device: torch.device) -> Tensor:
    return to_device(torch.tensor(site_keys), device)


def _scramble_(words: Tensor) -> Tensor:
    """int32 words hashed in place; multiplication wraps, shifts bring in zeros.

    The same finaliser without its last step. Sums of two hashes come in, and without that step pairs of features, pairs
    of rows and their rectangles are uncorrelated still; with one multiplication less they are not.
    """
    shifted = torch.bitwise_right_shift(words, _SIXTEEN)
    words ^= shifted.bitwise_and_(_LOW_SIXTEEN)
    words *= _FIRST_FACTOR
    torch.bitwise_right_shift(words, _FIFTEEN, out=shifted)
    words ^= shifted.bitwise_and_(_LOW_SEVENTEEN)
    words *= _SECOND_FACTOR
    return words
