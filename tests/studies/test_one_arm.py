"""Which results are taken for runs of one arm."""

from synthetic_results import a_result

from mtl.records import ResultRecord
from mtl.studies.one_arm import arms_of_results
from mtl.studies.table import arm_tables


def results(*named: tuple[int, str, str | None]) -> list[ResultRecord]:
    """Of each seed, arm hash and chain hash."""
    scores = {"joint": (("glue/rte", 70.0, 277, 277),)}
    return [a_result(scores, seed=seed, arm=arm).model_copy(update={"chain_hash": chain}) for seed, arm, chain in named]


def test_runs_that_start_from_their_own_seeds_are_of_one_chain() -> None:
    assert arms_of_results(results((1, "a", "c"), (2, "b", "c"), (1, "d", None))) == ["c", "c", "d"]


def test_runs_that_start_from_one_run_are_of_one_arm_whichever_seed_that_has() -> None:
    found = results((1, "a", "c"), (2, "a", None), (3, "a", None))
    assert arms_of_results(found) == arms_of_results(found[::-1]) == ["a"] * 3
    assert [table.seeds for table in arm_tables(found)] == [(1, 2, 3)]
    assert arms_of_results(found[:1]) == ["c"]


def test_two_arms_that_have_a_run_in_common_stay_two() -> None:
    assert arms_of_results(results((1, "a", "c"), (2, "a", None), (2, "b", "c"))) == ["c", "a", "c"]
