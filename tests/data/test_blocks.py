"""Blocks of the packed attention: every token stands in one block, and comes back to its place."""

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from mtl.data.blocks import sequence_blocks

LENGTHS = st.lists(st.integers(1, 70), min_size=1, max_size=12)


@given(LENGTHS)
def test_blocks_hold_whole_sequences_and_the_inverse_undoes_them(lengths: list[int]) -> None:
    found = sequence_blocks(np.array(lengths))
    places = torch.cat([block.index.flatten() for block in found.blocks])
    assert places[found.inverse].tolist() == list(range(sum(lengths)))
    owner = torch.repeat_interleave(torch.tensor(lengths))
    seen = []
    for block in found.blocks:
        valid = torch.ones_like(block.index, dtype=torch.bool) if block.valid is None else block.valid
        for row, row_valid in zip(block.index, valid, strict=True):
            own = row[row_valid]
            sequence = int(owner[own[0]])
            assert own.tolist() == (owner == sequence).nonzero().flatten().tolist()
            assert row_valid.tolist() == sorted(row_valid.tolist(), reverse=True)
            # Fillers repeat a token of the sequence itself, never a neighbour's.
            assert set(owner[row].tolist()) == {sequence}
            seen.append(sequence)
    assert sorted(seen) == list(range(len(lengths)))


@given(LENGTHS)
def test_little_is_wasted(lengths: list[int]) -> None:
    blocks = sequence_blocks(np.array(lengths)).blocks
    assert sum(block.index.numel() for block in blocks) <= sum(lengths) + 15 * len(lengths)


@given(LENGTHS, st.integers(1, 70))
def test_a_sequences_block_has_the_same_shape_up_to_its_own_class(lengths: list[int], another: int) -> None:
    """A sequence of another class of lengths joins no existing block."""
    classes = {(length + 15) // 16 for length in lengths}
    assume((another + 15) // 16 not in classes)
    before = {tuple(block.index.shape) for block in sequence_blocks(np.array(lengths)).blocks}
    after = {tuple(block.index.shape) for block in sequence_blocks(np.array([*lengths, another])).blocks}
    assert after == before | {(1, -(-another // 16) * 16)}
