from pathlib import Path

import pytest
from run_directories import write_run

from mtl.records import read_result, write_result
from mtl.studies.costs import arm_cost
from mtl.studies.find import find_runs
from mtl.studies.scored_arms import Arm, scored_arms


def with_cost(path: Path, **cost: object) -> Arm:
    write_run(path, "a", 1)
    result = read_result(path / "result.json").model_dump(by_alias=True)
    result["stages"]["joint"]["cost"] = cost
    write_result(path / "result.json", read_result(path / "result.json").model_validate(result))
    return scored_arms(find_runs([path]))[0]


def test_what_was_started_from_counts_once_at_any_depth(tmp_path: Path) -> None:
    grandparent = {"tokens": 100, "flops": 1.0}
    inherited = {"init": {"tokens": 10, "flops": 2.0, "inherited": {"joint": grandparent}}, "joint": grandparent}
    arm = with_cost(tmp_path, tokens=1, flops=4.0, inherited=inherited)
    found = arm_cost(arm, ["glue/rte"])
    assert (found.tokens, found.flops) == (111, 7.0)
    assert found.target_examples is None, "what another run saw of the task is not known"


def test_target_examples_are_the_tasks_own(tmp_path: Path) -> None:
    arm = with_cost(tmp_path, tokens=1)
    assert arm_cost(arm, ["glue/rte"]).target_examples == 20
    assert arm_cost(arm, ["glue/rte", "glue/cola"]).target_examples == 32
    assert arm_cost(arm, []).target_examples is None, "arms without a task in common have none"
    (tmp_path / "joint" / "sequence.npz").unlink()
    assert arm_cost(arm, ["glue/rte"]).target_examples is None


def test_means_over_seeds(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "a", 1)
    write_run(tmp_path / "b", "a", 2)
    result = read_result(tmp_path / "b" / "result.json").model_dump(by_alias=True)
    result["stages"]["joint"]["cost"]["tokens"] = 3000
    write_result(tmp_path / "b" / "result.json", read_result(tmp_path / "b" / "result.json").model_validate(result))
    assert arm_cost(scored_arms(find_runs([tmp_path]))[0], ["glue/rte"]).tokens == pytest.approx(2000)
