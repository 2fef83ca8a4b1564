"""Exact epochs in updates of one task."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.data.exact_block_plan import ExactBlockPlanner, blocks_of
from mtl.data.streams import TaskStream


def planner(sizes: list[int], rows: int, epochs: int = 2) -> ExactBlockPlanner:
    streams = [TaskStream(f"toy/{n}", 3, np.arange(size), np.full(size, 5)) for n, size in enumerate(sizes)]
    return ExactBlockPlanner(3, epochs * int(blocks_of(streams, rows).sum()), streams, rows)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 16))
def test_every_row_once_an_epoch_in_updates_of_one_task(sizes: list[int], rows: int) -> None:
    made = planner(sizes, rows)
    seen = np.zeros((2, len(sizes), max(sizes)), dtype=int)
    for step in range(made.total):
        plan = made.plan(step)
        assert len(set(plan.tasks.tolist())) == 1
        assert 1 <= plan.rows.size <= rows
        seen[step // (made.total // 2), plan.tasks[0], plan.rows] += 1
    for task, size in enumerate(sizes):
        assert (seen[:, task, :size] == 1).all()


def test_cursors_are_the_counts_of_all_updates_before() -> None:
    made = planner([17, 5, 30], 8)
    total = np.zeros(3, dtype=int)
    for step in range(made.total):
        np.testing.assert_array_equal(made.cursors(step), total)
        total += made.plan(step).counts(3)
    np.testing.assert_array_equal(made.cursors(made.total), [34, 10, 60])


def test_the_tasks_alternate_instead_of_following_one_another() -> None:
    made = planner([80, 80], 8, epochs=1)
    order = [int(made.plan(step).tasks[0]) for step in range(made.total)]
    assert order[:10].count(0) == pytest.approx(5, abs=1)
