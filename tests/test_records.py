"""A result comes back from its file as it was written, and what is no result is refused."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mtl import records
from mtl.errors import DataError

# The contract that other people's scripts read, as it is documented.
CONTRACT: dict[str, Any] = {
    "schema": 1,
    "status": "complete",
    "seed": 1,
    "arm_hash": "a",
    "run_hash": "b",
    "partial": False,
    "encoder": {"path": "bert-base-uncased", "known_training_data": ["glue/mnli"]},
    "stages": {
        "joint": {
            "tasks": {
                "glue/mnli": {
                    "primary": 84.1,
                    "selected_on": "last",
                    "looks": 1,
                    "selected_step": 900,
                    "train_rows": 19218,
                    "train_rows_official": 392702,
                    "splits": {
                        "dev_matched": {
                            "metrics": {"accuracy": 84.3},
                            "rows": 9815,
                            "rows_official": None,
                            "rows_sha256": "c",
                            "flags": ["constant"],
                        }
                    },
                }
            },
            "suites": {"glue": {"score": 80.2, "score_with_wnli": 78.1, "tasks": ["glue/mnli"]}},
            "cost": {
                "updates": 10,
                "examples": 20,
                "tokens": 30,
                "flops": 1.5e18,
                "seconds": 3.25,
                "inherited": {
                    "single": {"updates": 1, "examples": 2, "tokens": 3, "flops": 4.0, "seconds": 5.0, "inherited": {}}
                },
            },
        }
    },
}


# Keys that only results of runs have that used what they tell of.
WHERE_USED = {
    "run": {"chain_hash": "d", "fold": 2},
    "task": {"labels_shuffled": True, "kfold": 5},
    "split": {"rows_at_hand": 9900},
}


def test_keys_of_what_is_seldom_used_are_kept_where_they_are(tmp_path: Path) -> None:
    document = copy.deepcopy(CONTRACT) | WHERE_USED["run"]
    task = document["stages"]["joint"]["tasks"]["glue/mnli"]
    task |= WHERE_USED["task"]
    task["splits"]["dev_matched"] |= WHERE_USED["split"]
    path = tmp_path / "result.json"
    records.write_result(path, records.ResultRecord.model_validate(document))
    assert json.loads(path.read_text(encoding="utf-8")) == document
    assert records.read_result(path).arm == "d"
    assert _result().arm == "a"


def _result(**changes: Any) -> records.ResultRecord:
    return records.ResultRecord.model_validate({**CONTRACT, **changes})


def test_the_file_holds_the_documented_contract(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    records.write_result(path, _result())
    assert json.loads(path.read_text(encoding="utf-8")) == CONTRACT
    assert records.read_result(path) == _result()


def test_stages_built_in_python_equal_those_read() -> None:
    split = records.SplitRecord(metrics={"accuracy": 84.3}, rows=9815, rows_sha256="c", flags=["constant"])
    task = records.TaskRecord(
        primary=84.1,
        selected_on="last",
        looks=1,
        selected_step=900,
        train_rows=19218,
        train_rows_official=392702,
        splits={"dev_matched": split},
    )
    assert _result().stages["joint"].tasks["glue/mnli"] == task


@given(
    score=st.floats(-100, 100),
    seconds=st.floats(0, allow_infinity=False),
    flops=st.floats(0, allow_infinity=False),
    seed=st.integers(-(2**63), 2**63),
    text=st.text(st.characters(exclude_categories=("Cs",))),
)
def test_every_number_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, score: float, seconds: float, flops: float, seed: int, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "result.json"
    stage = records.StageRecord(
        tasks={},
        suites={text: records.SuiteRecord(score=score, tasks=[text])},
        cost=records.CostRecord(flops=flops, seconds=seconds),
    )
    result = _result(seed=seed, stages={"finetune": stage})
    records.write_result(path, result)
    assert records.read_result(path) == result


def test_equal_results_give_equal_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    records.write_result(first, _result())
    records.write_result(second, records.read_result(first))
    assert first.read_bytes() == second.read_bytes()


def test_timings_stand_under_cost_only() -> None:
    def paths(value: Any, path: str = "") -> list[str]:
        items = value.items() if isinstance(value, dict) else []
        return [path, *(deeper for key, inner in items for deeper in paths(inner, f"{path}.{key}"))]

    timed = [path for path in paths(CONTRACT) if "seconds" in path]
    assert timed == [".stages.joint.cost.seconds", ".stages.joint.cost.inherited.single.seconds"]
    names = json.dumps(records.result_schema())
    assert names.count('"seconds"') == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 2},
        {"status": "done"},
        {"extra": 1},
        {"stages": {"pretrain": CONTRACT["stages"]["joint"]}},
        {"encoder": {}},
        {"seed": "1"},
        {"partial": 0},
    ],
)
def test_other_content_is_refused_naming_the_file(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**CONTRACT, **changes}), encoding="utf-8")
    with pytest.raises(DataError, match=rf"result\.json is no result of schema 1 \({next(iter(changes))}"):
        records.read_result(path)


@pytest.mark.parametrize("content", [b"", b'{"schema": 1', b"[]", b"\xff\xfe"])
def test_what_is_no_json_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"result\.json"):
        records.read_result(path)


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no result at"):
        records.read_result(tmp_path / "result.json")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_no_result(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        records.SuiteRecord(score=value, tasks=[])


def test_records_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        _result().seed = 2


def test_the_schema_names_the_documented_keys() -> None:
    schema = records.result_schema()
    assert set(schema["properties"]) == {*CONTRACT, *WHERE_USED["run"]}
    stages = CONTRACT["stages"]["joint"]
    definitions = schema["$defs"]
    assert set(definitions["StageRecord"]["properties"]) == set(stages)
    assert set(definitions["CostRecord"]["properties"]) == set(stages["cost"])
    task = stages["tasks"]["glue/mnli"]
    assert set(definitions["TaskRecord"]["properties"]) == {*task, *WHERE_USED["task"]}
    split = task["splits"]["dev_matched"]
    assert set(definitions["SplitRecord"]["properties"]) == {*split, *WHERE_USED["split"]}
    assert set(definitions["SuiteRecord"]["properties"]) == set(stages["suites"]["glue"])
