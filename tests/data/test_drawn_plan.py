"""Updates drawn by a sampler: shares of rows or tokens, any step at any time, each task's own order kept."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from planned_streams import SIZES, made_up_streams

from mtl.config.sampling import RoundRobinSampling, SamplingSettings, TemperatureSampling
from mtl.data.drawn_plan import DrawnPlanner, UpdateSize
from mtl.data.plan import UpdatePlan
from mtl.sampling.registry import make_sampler

HALF = TemperatureSampling(temperature=2.0)
SHARES = np.array([1, 4, 2]) / 7
IN_ROWS = UpdateSize(rows=32, tokens=None, groups=None)
IN_TOKENS = UpdateSize(rows=None, tokens=600, groups=None)


def _planner(size: UpdateSize, *, sampling: SamplingSettings = HALF, seed: int = 1) -> DrawnPlanner:
    return DrawnPlanner(seed, 10_000, made_up_streams(seed=seed), make_sampler(sampling, SIZES), size)


def _same(first: UpdatePlan, second: UpdatePlan) -> bool:
    fields = ("tasks", "rows", "lengths")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in fields)


@pytest.mark.parametrize("groups", [None, 1, 2, 4, 32])
def test_shares_of_rows(groups: int | None) -> None:
    planner = _planner(UpdateSize(rows=32, tokens=None, groups=groups))
    counts = np.array([planner.plan(step).counts(3) for step in range(1500)])
    assert (counts.sum(axis=1) == 32).all()
    draws = 1500 * (groups or 32)
    error = np.sqrt(SHARES * (1 - SHARES) / draws)
    assert (np.abs(counts.sum(axis=0) / counts.sum() - SHARES) < 4 * error).all()


@pytest.mark.parametrize("groups", [None, 1, 3])
def test_shares_are_of_tokens_where_updates_are_sized_in_tokens(groups: int | None) -> None:
    planner = _planner(UpdateSize(rows=None, tokens=600, groups=groups))
    tokens = np.array([planner.plan(step).tokens(3) for step in range(1500)])
    means, errors = tokens.mean(axis=0), tokens.std(axis=0) / np.sqrt(1500)
    assert (np.abs(means - 600 * SHARES) < 4 * errors).all()
    # Tasks differ threefold in length, so the same shares of rows would be far from these.
    rows = np.array(planner.cursors(1500)) / planner.cursors(1500).sum()
    assert np.abs(rows - SHARES).max() > 0.05


def test_budgets_smaller_than_an_example_are_met_on_average() -> None:
    planner = _planner(UpdateSize(rows=None, tokens=12, groups=None))
    tokens = np.array([planner.plan(step).tokens(3) for step in range(3000)])
    assert (tokens.sum(axis=1) > 0).all()
    shares = tokens.sum(axis=0) / tokens.sum()
    assert np.abs(shares - SHARES).max() < 0.05


def test_group_sizes_differ_by_one_at_most_and_favour_no_place() -> None:
    planner = _planner(UpdateSize(rows=10, tokens=None, groups=3), sampling=RoundRobinSampling())
    counts = np.array([planner.plan(step).counts(3) for step in range(900)])
    assert set(np.unique(counts)) == {3, 4}
    assert (counts.sum(axis=1) == 10).all()
    # The tenth row falls to each group a third of the time: standard deviation of the count about 14.
    assert np.abs(counts.sum(axis=0) - 3000).max() < 60


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_round_robin_reaches_every_task(groups: int) -> None:
    planner = _planner(UpdateSize(rows=4 * groups, tokens=None, groups=groups), sampling=RoundRobinSampling())
    counts = sum(planner.plan(step).counts(3) for step in range(3))
    assert np.array_equal(counts, np.full(3, 4 * groups))


@pytest.mark.parametrize("size", [IN_ROWS, IN_TOKENS])
def test_a_step_is_the_same_whenever_and_however_often_it_is_asked(size: UpdateSize) -> None:
    planner = _planner(size)
    plans = [planner.plan(step) for step in range(150)]
    fresh = _planner(size)
    # Steps 1 and 60 lie further back than the positions that are kept.
    for step in (149, 149, 148, 1, 60, 0, 5):
        assert _same(planner.plan(step), plans[step])
        assert _same(fresh.plan(step), plans[step])
    assert all(plan.step == step for step, plan in enumerate(plans))


@pytest.mark.parametrize("size", [IN_ROWS, IN_TOKENS])
def test_seeking_saves_the_replay_and_changes_nothing(size: UpdateSize) -> None:
    planner = _planner(size)
    plans = [planner.plan(step) for step in range(40)]
    resumed = _planner(size)
    resumed.seek(30, planner.cursors(30))
    for step in range(30, 40):
        assert _same(resumed.plan(step), plans[step])
    assert _same(resumed.plan(3), plans[3])


@pytest.mark.parametrize("size", [IN_ROWS, IN_TOKENS])
def test_cursors_count_the_examples_before_a_step(size: UpdateSize) -> None:
    planner = _planner(size)
    expected = np.zeros(3, dtype=np.int64)
    for step in range(20):
        assert np.array_equal(planner.cursors(step), expected)
        expected = expected + planner.plan(step).counts(3)
    planner.cursors(20)[:] = 0
    assert np.array_equal(planner.cursors(20), expected)


@pytest.mark.parametrize("size", [IN_ROWS, IN_TOKENS])
def test_each_task_goes_through_its_rows_epoch_by_epoch(size: UpdateSize) -> None:
    planner = _planner(size)
    plans = [planner.plan(step) for step in range(60)]
    for task, stream in enumerate(planner.streams):
        rows = np.concatenate([plan.rows[plan.tasks == task] for plan in plans])
        lengths = np.concatenate([plan.lengths[plan.tasks == task] for plan in plans])
        assert np.array_equal(lengths, stream.lengths[(rows - 1) // 2])
        for epoch in range(rows.size // stream.size):
            part = rows[epoch * stream.size : (epoch + 1) * stream.size]
            assert np.array_equal(np.sort(part), stream.rows)


def test_other_tasks_do_not_change_a_tasks_order() -> None:
    joint = _planner(IN_ROWS)
    rows = np.concatenate([plan.rows[plan.tasks == 2] for plan in map(joint.plan, range(30))])
    streams = [made_up_streams()[2]]
    sampler = make_sampler(HALF, {"glue/cola": 160})
    alone = DrawnPlanner(1, 10_000, streams, sampler, UpdateSize(rows=16, tokens=None, groups=None))
    single = np.concatenate([alone.plan(step).rows for step in range(-(-rows.size // 16))])
    assert rows.size > 200
    assert np.array_equal(single[: rows.size], rows)


def test_seeds_differ() -> None:
    assert not _same(_planner(IN_ROWS).plan(0), _planner(IN_ROWS, seed=2).plan(0))


def test_threads_may_share_a_planner() -> None:
    expected = [_planner(IN_ROWS).cursors(step).tolist() for step in range(0, 200, 10)]
    planner = _planner(IN_ROWS)
    with ThreadPoolExecutor(4) as threads:
        plans = threads.map(planner.plan, range(200))
        cursors = threads.map(planner.cursors, list(range(0, 200, 10)) * 3)
        assert [each.tolist() for each in cursors] == expected * 3
        assert [plan.step for plan in plans] == list(range(200))
