"""Updates prepared ahead on a thread: the same ones in the same order, with its errors, and no thread left behind."""

import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from mtl.data.batches import UpdateWork
from mtl.data.plan import UpdatePlan
from mtl.errors import DataError
from mtl.training.prepared import Preparation, PreparedUpdate, prefetched
from tests.training.toy_training import TASKS, toy_training


@dataclass
class CountingPreparation:
    """Stands in for a preparation: counts what it prepared, and fails at one step."""

    fails_at: int | None = None
    prepared: list[int] = field(default_factory=list)

    def prepare(self, planner: object, step: int) -> PreparedUpdate:
        if step == self.fails_at:
            raise DataError(f"row of step {step} is damaged")
        self.prepared.append(step)
        empty = np.zeros(0, dtype=np.int64)
        plan = UpdatePlan(step, empty, empty, empty)
        return PreparedUpdate(plan, empty, empty, np.zeros(0), UpdateWork(0, 0.0, {}), 1, [])


@dataclass
class Length:
    """Stands in for a planner that is only asked how long it is."""

    total: int


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("prefetch")}


@pytest.mark.parametrize("start", [0, 3, 10])
def test_order_is_that_of_the_steps(start: int) -> None:
    preparation = CountingPreparation()
    steps = [update.step for update in prefetched(preparation, Length(10), start)]  # type: ignore[arg-type]
    assert steps == list(range(start, 10))
    assert not threads()


def test_updates_equal_those_prepared_at_once() -> None:
    toy, other = toy_training(total=6, micro_batches=2), toy_training(total=6, micro_batches=2)
    for step, update in enumerate(prefetched(toy.preparation, toy.planner, 0)):
        expected = other.update(step)
        np.testing.assert_array_equal(update.counts, expected.counts)
        np.testing.assert_allclose(update.shares, update.counts / 12)
        assert len(update.batches) == len(expected.batches) == 2
        for batch, wanted in zip(update.batches, expected.batches, strict=True):
            assert batch.token_ids.tolist() == wanted.token_ids.tolist()
            assert batch.slots.tolist() == wanted.slots.tolist()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_error_on_the_thread_is_raised_where_the_updates_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []
    updates = prefetched(CountingPreparation(fails_at=4), Length(10), 0)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="row of step 4"):
        seen.extend(update.step for update in updates)
    assert seen == [0, 1, 2, 3]
    assert not threads()
    assert "Traceback" not in capsys.readouterr().err


def test_leaving_early_ends_the_thread() -> None:
    preparation = CountingPreparation()
    updates = prefetched(preparation, Length(10_000), 0)  # type: ignore[arg-type]
    next(updates)
    assert len(threads()) == 1
    began = time.monotonic()
    updates.close()  # type: ignore[attr-defined]
    assert not threads()
    assert time.monotonic() - began < 5.0
    assert len(preparation.prepared) < 10


def test_not_more_than_the_depth_is_prepared_ahead() -> None:
    preparation = CountingPreparation()
    updates = prefetched(preparation, Length(100), 0, depth=3)  # type: ignore[arg-type]
    next(updates)
    time.sleep(0.3)
    assert preparation.prepared == [0, 1, 2, 3]
    next(updates)
    time.sleep(0.3)
    assert preparation.prepared == [0, 1, 2, 3, 4]
    updates.close()  # type: ignore[attr-defined]


@dataclass
class FixedPlan:
    """One plan for every step."""

    plan_: UpdatePlan

    def plan(self, step: int) -> UpdatePlan:
        return self.plan_


def plan_of(rows: list[tuple[int, int]], lengths: list[int]) -> FixedPlan:
    tasks, places = np.array(rows, dtype=np.int64).T
    return FixedPlan(UpdatePlan(0, tasks, places, np.array(lengths, dtype=np.int64)))


@pytest.mark.parametrize("unit", ["rows", "tokens"])
def test_shares_are_of_the_updates_unit(unit: str) -> None:
    source = toy_training().preparation.source
    stores = [source.stores[task] for task in TASKS]
    rows = [(0, 1), (0, 2), (2, 3)]
    lengths = [int(stores[task].lengths()[row]) for task, row in rows]
    update = Preparation(source, unit, 1, 100, pin=False).prepare(plan_of(rows, lengths), 0)  # type: ignore[arg-type]
    first = (2 / 3) if unit == "rows" else (lengths[0] + lengths[1]) / sum(lengths)
    np.testing.assert_allclose(update.shares, [first, 0.0, 1.0 - first])
    assert update.counts.tolist() == [2, 0, 1]
    assert update.tokens.tolist() == [lengths[0] + lengths[1], 0, lengths[2]]


def test_micro_batches_keep_to_the_token_limit_and_none_is_empty() -> None:
    toy = toy_training(rows=12)
    preparation = Preparation(toy.preparation.source, "rows", 1, 30, pin=False)
    for step in range(10):
        update = preparation.prepare(toy.planner, step)
        assert sum(batch.examples for batch in update.batches) == 12
        assert sorted(slot for batch in update.batches for slot in batch.slots.tolist()) == list(range(12))
        assert all(batch.tokens <= 30 or batch.examples == 1 for batch in update.batches)
    few = toy_training(rows=2, micro_batches=5)
    assert [batch.examples for batch in few.update(0).batches] == [1, 1]
