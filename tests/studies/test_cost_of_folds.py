"""What folds cost together: each its own training, and what several started from once."""

from functools import reduce

from mtl.records import CostRecord
from mtl.studies.folds import _sum


def cost(updates: int, **inherited: CostRecord) -> CostRecord:
    return CostRecord(
        updates=updates, examples=2 * updates, tokens=9 * updates, flops=1e9, seconds=1.0, inherited=inherited
    )


def test_folds_that_spent_alike_are_added_up() -> None:
    assert reduce(_sum, [cost(10), cost(10), cost(10)]).updates == 30


def test_the_same_start_counts_once_and_each_fold_s_own_is_added() -> None:
    shared = reduce(_sum, [cost(10, init=cost(100)), cost(20, init=cost(100))])
    assert (shared.updates, shared.inherited["init"].updates) == (30, 100)
    own = reduce(_sum, [cost(10, init=cost(100)), cost(20, init=cost(101))])
    assert own.inherited["init"].updates == 201
