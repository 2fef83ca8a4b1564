"""Dealing an update to ranks and micro-batches: every slot once, balanced, the same for all who ask."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.data.plan import UpdatePlan, micro_batches_needed, split_plan

LENGTHS = st.lists(st.integers(min_value=1, max_value=128), min_size=1, max_size=60)


def _plan(lengths: list[int]) -> UpdatePlan:
    rows = np.arange(len(lengths))
    return UpdatePlan(0, rows % 3, rows, np.array(lengths))


def _loads(plan: UpdatePlan, ranks: int, micro_batches: int) -> list[int]:
    return [int(plan.lengths[slots].sum()) for rank in split_plan(plan, ranks, micro_batches) for slots in rank]


@given(
    lengths=LENGTHS, ranks=st.integers(min_value=1, max_value=4), micro_batches=st.integers(min_value=1, max_value=4)
)
def test_every_slot_is_dealt_once_and_loads_are_close(lengths: list[int], ranks: int, micro_batches: int) -> None:
    plan = _plan(lengths)
    parts = split_plan(plan, ranks, micro_batches)
    assert [len(rank) for rank in parts] == [micro_batches] * ranks
    dealt = np.concatenate([slots for rank in parts for slots in rank])
    assert np.array_equal(np.sort(dealt), np.arange(len(lengths)))
    assert all(np.array_equal(slots, np.sort(slots)) for rank in parts for slots in rank)
    loads = _loads(plan, ranks, micro_batches)
    assert max(loads) - min(loads) <= max(lengths)


def test_the_split_is_pure() -> None:
    lengths = [5, 5, 5, 9, 1, 1, 7, 7]
    first, second = split_plan(_plan(lengths), 2, 2), split_plan(_plan(lengths), 2, 2)
    for one, other in zip(first, second, strict=True):
        assert [slots.tolist() for slots in one] == [slots.tolist() for slots in other]


def test_too_few_slots_leave_parts_empty() -> None:
    sizes = [slots.size for rank in split_plan(_plan([4, 4]), 2, 2) for slots in rank]
    assert sorted(sizes) == [0, 0, 1, 1]


def test_one_part_is_the_whole_update() -> None:
    [[slots]] = split_plan(_plan([3, 1, 2]), 1, 1)
    assert slots.tolist() == [0, 1, 2]


@given(
    lengths=LENGTHS,
    ranks=st.integers(min_value=1, max_value=3),
    at_least=st.integers(min_value=1, max_value=3),
    limit=st.integers(min_value=16, max_value=400),
)
def test_micro_batches_respect_the_token_limit(lengths: list[int], ranks: int, at_least: int, limit: int) -> None:
    plan = _plan(lengths)
    count = micro_batches_needed(plan, ranks, at_least, limit)
    assert count >= at_least
    for rank in split_plan(plan, ranks, count):
        for slots in rank:
            assert slots.size <= 1 or plan.lengths[slots].sum() <= limit


@pytest.mark.parametrize(
    ("lengths", "ranks", "at_least", "limit", "count"),
    [
        ([10] * 8, 1, 1, 80, 1),
        ([10] * 8, 1, 1, 79, 2),
        ([10] * 8, 1, 3, 80, 3),
        ([10] * 8, 2, 1, 40, 1),
        ([100, 100], 1, 1, 50, 2),
    ],
)
def test_no_more_micro_batches_than_needed(
    lengths: list[int], ranks: int, at_least: int, limit: int, count: int
) -> None:
    assert micro_batches_needed(_plan(lengths), ranks, at_least, limit) == count


def test_counts_and_tokens_by_task() -> None:
    plan = UpdatePlan(0, np.array([0, 2, 2, 0]), np.arange(4), np.array([5, 6, 7, 8]))
    assert plan.counts(4).tolist() == [2, 0, 2, 0]
    assert plan.tokens(4).tolist() == [13, 0, 13, 0]
