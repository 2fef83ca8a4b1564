"""Where the sequences of a batch stand in dense blocks of similar length: what attention runs on.

Made on the host with the batch, ahead of the update, so that a GPU gets it as it gets the tokens. Letters: S sequences,
L length of a block, T tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from mtl.sampling.samplers import IntArray

_LENGTH_STEP = 16


@dataclass(frozen=True)
class Block:
    """Some sequences of similar length as one dense block.

    ``index`` (S, L) into the packed tokens; places past a sequence's end repeat its first token and are not ``valid``
    (S, L); ``valid`` is None where there are none.
    """

    index: Tensor
    valid: Tensor | None


@dataclass(frozen=True)
class Blocks:
    """All blocks of a batch; ``inverse`` (T,) is the place of every packed token among the places of all in turn."""

    blocks: tuple[Block, ...]
    inverse: Tensor

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed, to another device for example."""
        blocks = tuple(
            Block(change(block.index), None if block.valid is None else change(block.valid)) for block in self.blocks
        )
        return type(self)(blocks, change(self.inverse))


def sequence_blocks(lengths: IntArray) -> Blocks:
    """Blocks for sequences of ``lengths`` (S,) in packed order.

    Lengths within the same 16 share a block, as long as the longest of them could be: the softmax and the products of
    attention are fastest at such lengths, and few shapes recur. A block's shape depends on its own sequences alone.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    classes = (lengths + _LENGTH_STEP - 1) // _LENGTH_STEP
    blocks, begin = [], 0
    inverse = np.empty(int(offsets[-1]), dtype=np.int64)
    for length_class in np.unique(classes):
        chosen = np.flatnonzero(classes == length_class)
        places = np.arange(length_class * _LENGTH_STEP)[None, :]
        valid = places < lengths[chosen][:, None]
        index = offsets[chosen][:, None] + np.where(valid, places, 0)
        inverse[index[valid]] = begin + np.flatnonzero(valid)
        begin += valid.size
        blocks.append(Block(torch.from_numpy(index), None if valid.all() else torch.from_numpy(valid)))
    return Blocks(tuple(blocks), torch.from_numpy(inverse))
