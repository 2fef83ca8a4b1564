"""Exact epochs: every row of every task once an epoch, in its task's own order, spread evenly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_streams import made_up_streams

from mtl.config.run import StageSettings
from mtl.config.sampling import ExactEpochSampling
from mtl.config.training import TrainingSettings
from mtl.data.exact_plan import ExactEpochPlanner
from mtl.data.planner import make_planner


def _planner(sizes: list[int], *, rows: int, epochs: float) -> ExactEpochPlanner:
    named = {f"made/task{number}": size for number, size in enumerate(sizes)}
    training = TrainingSettings(epochs=epochs, rows_per_update=rows)
    stage = StageSettings(sampling=ExactEpochSampling(), training=training)
    planner = make_planner(stage, 1, made_up_streams(named), named)
    assert isinstance(planner, ExactEpochPlanner)
    return planner


def _slots(planner: ExactEpochPlanner) -> tuple[np.ndarray, np.ndarray]:
    plans = [planner.plan(step) for step in range(planner.total)]
    return np.concatenate([plan.tasks for plan in plans]), np.concatenate([plan.rows for plan in plans])


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(min_value=1, max_value=60), min_size=1, max_size=5),
    rows=st.integers(min_value=5, max_value=40),
    epochs=st.sampled_from([0.3, 1.0, 2.0, 2.5, 3.1]),
)
def test_every_row_comes_once_an_epoch(sizes: list[int], rows: int, epochs: float) -> None:
    planner = _planner(sizes, rows=rows, epochs=epochs)
    tasks, chosen = _slots(planner)
    size = sum(sizes)
    assert tasks.size == int(np.ceil(round(epochs * size, 6)))
    for epoch in range(int(epochs)):
        part = slice(epoch * size, (epoch + 1) * size)
        for task, stream in enumerate(planner.streams):
            of_task = chosen[part][tasks[part] == task]
            assert np.array_equal(np.sort(of_task), stream.rows)
    rest = slice(int(epochs) * size, None)
    pairs = list(zip(tasks[rest].tolist(), chosen[rest].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=3),
    rows=st.integers(min_value=1, max_value=9),
    epochs=st.floats(min_value=0.01, max_value=3),
)
def test_no_update_is_empty_and_all_but_the_last_are_full(sizes: list[int], rows: int, epochs: float) -> None:
    planner = _planner(sizes, rows=rows, epochs=epochs)
    held = [planner.plan(step).tasks.size for step in range(planner.total)]
    assert held[:-1] == [rows] * (planner.total - 1)
    assert 1 <= held[-1] <= rows


def test_two_and_a_half_epochs() -> None:
    planner = _planner([10, 30, 60], rows=32, epochs=2.5)
    tasks, _ = _slots(planner)
    assert planner.total == 8
    counts = np.bincount(tasks)
    assert counts.sum() == 250
    assert np.abs(counts - [25, 75, 150]).max() <= 2


def test_a_set_number_of_updates_is_full() -> None:
    stage = StageSettings(sampling=ExactEpochSampling(), training=TrainingSettings(updates=7, rows_per_update=9))
    planner = make_planner(stage, 1, made_up_streams({"made/a": 5, "made/b": 8}), {"made/a": 5, "made/b": 8})
    assert [planner.plan(step).tasks.size for step in range(planner.total)] == [9] * 7


def test_a_step_is_the_same_whenever_it_is_asked() -> None:
    planner, other = _planner([10, 30, 60], rows=32, epochs=3), _planner([10, 30, 60], rows=32, epochs=3)
    plans = [planner.plan(step) for step in range(planner.total)]
    for step in (8, 3, 3, 0):
        again = other.plan(step)
        assert np.array_equal(again.rows, plans[step].rows)
        assert np.array_equal(again.tasks, plans[step].tasks)


def test_cursors_count_the_examples_before_a_step() -> None:
    planner = _planner([10, 30, 60], rows=32, epochs=2.5)
    expected = np.zeros(3, dtype=np.int64)
    for step in range(planner.total):
        assert np.array_equal(planner.cursors(step), expected)
        expected = expected + planner.plan(step).counts(3)
    assert np.array_equal(planner.cursors(planner.total), expected)


def test_every_tenth_of_an_epoch_holds_a_tenth_of_each_task() -> None:
    planner = _planner([100, 300, 600], rows=100, epochs=1)
    for step in range(10):
        assert np.abs(planner.plan(step).counts(3) - [10, 30, 60]).max() <= 3


def test_epochs_differ_in_order_and_in_interleaving() -> None:
    tasks, rows = _slots(_planner([50, 50], rows=10, epochs=2))
    assert (tasks[:100] != tasks[100:]).any()
    assert (rows[:100] != rows[100:]).any()


def test_a_tasks_order_is_that_of_its_stream() -> None:
    planner = _planner([20, 35], rows=11, epochs=3)
    tasks, rows = _slots(planner)
    stream = planner.streams[1]
    assert np.array_equal(rows[tasks == 1], stream.rows[stream.chosen(np.arange(105))])


def test_lengths_belong_to_the_rows() -> None:
    planner = _planner([20, 35], rows=11, epochs=1)
    for step in range(planner.total):
        plan = planner.plan(step)
        for task, stream in enumerate(planner.streams):
            held = plan.tasks == task
            assert plan.lengths[held] == pytest.approx(stream.lengths[(plan.rows[held] - 1) // 2])
