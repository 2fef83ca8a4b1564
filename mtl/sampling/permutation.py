"""A random order of any number of rows that never has to be stored: position in, row out.

A Feistel network (Luby and Rackoff 1988) permutes the smallest even number of bits that holds the size, and values
outside the range are sent through again until they fall inside (cycle walking, Black and Rogaway 2002). An order over
1e8 rows costs no memory and any position of it the same few operations.
"""

import numpy as np
import numpy.typing as npt

from mtl.sampling.samplers import IntArray

UnsignedArray = npt.NDArray[np.uint64]

_ROUNDS = 8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def permuted(positions: IntArray, size: int, key: int) -> IntArray:
    """The rows (N,) at ``positions`` (N,) of the order named by the 64-bit ``key``: a bijection of ``range(size)``."""
    if positions.size and (positions.min() < 0 or positions.max() >= size):
        raise ValueError(f"positions must lie in 0..{size - 1}")
    half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
    values = _encrypt(positions.astype(np.uint64), half_bits, key)
    outside = values >= size
    while outside.any():
        values[outside] = _encrypt(values[outside], half_bits, key)
        outside = values >= size
    return values.astype(np.int64)


def _encrypt(values: UnsignedArray, half_bits: int, key: int) -> UnsignedArray:
    shift, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    left: UnsignedArray = values >> shift
    right: UnsignedArray = values & mask
    for number in range(_ROUNDS):
        round_key = np.uint64((key + (number + 1) * int(_GOLDEN)) % 2**64)
        left, right = right, left ^ (mix64(right + round_key) & mask)
    return (left << shift) | right


def mix64(values: UnsignedArray) -> UnsignedArray:
    """Steele, Lea and Flood (2014), the finaliser of SplitMix64: every input bit reaches every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)), dtype=np.uint64)
