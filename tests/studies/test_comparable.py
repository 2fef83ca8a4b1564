from pathlib import Path
from typing import Any

import pytest
from run_directories import write_run, write_study

from mtl import tasks
from mtl.errors import ConfigError, DataError
from mtl.records import read_result, write_result
from mtl.studies.comparable import check_comparable
from mtl.studies.find import find_runs
from mtl.studies.scored_arms import Arm, scored_arms


def two_arms(path: Path, **second: Any) -> tuple[Arm, ...]:
    write_study(
        path, {"alone": 0.0}, seeds=(1,), **({"selected_on": "holdout", "looks": 4} if "looks" in second else {})
    )
    write_run(path / "runs" / "tuned" / "seed-1", "t", 1, **second)
    return scored_arms(find_runs([path]))


def test_arms_alike_are_compared(tmp_path: Path) -> None:
    arms = two_arms(tmp_path)
    assert check_comparable(arms, arms[0]) == ()


@pytest.mark.parametrize(
    ("second", "kind", "told"),
    [
        ({"data": "e" * 64}, "data", "glue/rte: alone and tuned were trained on different files"),
        ({"selected_on": "dev"}, "selection", "glue/rte: alone was selected on last, tuned on dev"),
        (
            {"selected_on": "holdout", "looks": 9},
            "selection",
            "glue/rte: alone was selected with 4 looks at holdout, tuned with 9",
        ),
    ],
)
def test_what_differs_is_named_and_can_be_allowed(second: dict[str, Any], kind: Any, told: str, tmp_path: Path) -> None:
    arms = two_arms(tmp_path, **second)
    with pytest.raises(ConfigError, match=told) as caught:
        check_comparable(arms, arms[0])
    assert f"--allow-different {kind}" in str(caught.value)
    assert any(told in note for note in check_comparable(arms, arms[0], [kind]))
    other = {"data": "selection", "selection": "data"}[kind]
    with pytest.raises(ConfigError, match=told):
        check_comparable(arms, arms[0], [other])  # type: ignore[list-item]


def test_twice_the_looks_are_allowed(tmp_path: Path) -> None:
    arms = two_arms(tmp_path, selected_on="holdout", looks=8)
    assert check_comparable(arms, arms[0]) == ()


def test_other_rows_are_never_compared(tmp_path: Path) -> None:
    arms = two_arms(tmp_path, rows="e" * 64)
    with pytest.raises(
        ConfigError, match=r"rows: glue/cola: alone and tuned were scored on different rows of dev"
    ) as caught:
        check_comparable(arms, arms[0], ["data", "selection"])
    assert "--allow-different" not in str(caught.value)


@pytest.mark.parametrize(("folds", "told"), [(None, "on dev"), (3, "on train and dev in 3 folds")])
def test_scores_of_other_folds_or_none_are_never_compared(folds: int | None, told: str, tmp_path: Path) -> None:
    write_study(tmp_path, {"folded": 0.0}, seeds=(1,), kfold=5)
    write_run(tmp_path / "runs" / "tuned" / "seed-1", "t", 1, kfold=folds, data="e" * 64)
    arms = scored_arms(find_runs([tmp_path]))
    match = f"rows: glue/cola: folded is scored on train and dev in 5 folds, tuned {told}"
    with pytest.raises(ConfigError, match=match) as caught:
        check_comparable(arms, arms[0], ["data", "selection"])
    assert "different files" not in str(caught.value), "only what all else follows from is named"


def test_another_definition_of_the_score_is_never_compared(tmp_path: Path) -> None:
    two_arms(tmp_path)
    path = tmp_path / "runs" / "tuned" / "seed-1" / "result.json"
    result = read_result(path).model_dump(by_alias=True)
    record = result["stages"]["joint"]["tasks"]["glue/stsb"]
    record["primary"] = record["splits"]["dev"]["metrics"]["pearson"]
    write_result(path, read_result(path).model_validate(result))
    arms = scored_arms(find_runs([tmp_path]))
    assert tasks.get("glue/stsb").primary == ("pearson", "spearman")
    with pytest.raises(ConfigError, match=r"metric: glue/stsb: the score of alone and tuned is the mean of pearson"):
        check_comparable(arms, arms[0], ["data", "selection"])


def test_all_that_differs_is_listed_at_once(tmp_path: Path) -> None:
    arms = two_arms(tmp_path, data="e" * 64, selected_on="dev")
    with pytest.raises(ConfigError) as caught:
        check_comparable(arms, arms[0])
    assert str(caught.value).count("\n  ") == 6
    assert "--allow-different data and --allow-different selection" in str(caught.value)


def test_without_checksums_other_numbers_of_training_rows_are_refused(tmp_path: Path) -> None:
    two_arms(tmp_path)
    path = tmp_path / "runs" / "tuned" / "seed-1"
    (path / "environment.json").unlink()
    result = read_result(path / "result.json").model_dump(by_alias=True)
    result["stages"]["joint"]["tasks"]["glue/rte"]["train_rows"] = 50
    write_result(path / "result.json", read_result(path / "result.json").model_validate(result))
    arms = scored_arms(find_runs([tmp_path]))
    with pytest.raises(ConfigError, match="trained on 100 and 50 rows"):
        check_comparable(arms, arms[0])


def test_a_damaged_environment_is_an_error(tmp_path: Path) -> None:
    arms = two_arms(tmp_path)
    (tmp_path / "runs" / "tuned" / "seed-1" / "environment.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        check_comparable(arms, arms[0])
