"""What a study says its arms spend alike, against what they would spend."""

from pathlib import Path
from typing import Any

import pytest
from test_expand import OUT, study

from mtl.errors import ConfigError, DataError
from mtl.studies.equal import check_equal
from mtl.studies.expand import expand

JOINT = ["stages=[joint]", "training.updates=24"]


def checked(equal: str, arms: dict[str, list[str]]) -> str:
    made = study(equal=equal, arms=arms)
    return check_equal(made, expand(made, OUT))


def test_updates_of_all_models_and_of_the_run_it_starts_from_count() -> None:
    arms = {
        "joint": JOINT,
        "single": ["stages=[single]", "single.training.updates=8"],
        "longer": ["stages=[joint]", "training.updates=6", "init.from=arm:start"],
        "start": ["stages=[joint]", "training.updates=18"],
    }
    assert checked("updates", arms) == "equal: every arm takes 24 updates in all"
    arms["start"] = ["stages=[joint]", "training.updates=19"]
    with pytest.raises(ConfigError, match=r"longer: updates 25") as caught:
        checked("updates", arms)
    assert "start" not in str(caught.value)


def test_a_run_that_replays_another_is_expected_to_draw_what_that_one_does() -> None:
    arms = {
        "uniform": ["sampling=uniform"],
        "replayed": ["sampling=replay", "sampling.from=arm:uniform", "optimizer.beta1=0.5"],
    }
    assert "as often in every arm" in checked("target_examples", arms)
    assert checked("updates", arms) == "equal: every arm takes 8 updates in all"
    with pytest.raises(ConfigError, match="replayed: mini/entail2"):
        checked("target_examples", {**arms, "more": [*arms["uniform"], "training.updates=16"]})


def test_one_fold_stands_for_all() -> None:
    made = study(equal="updates", arms={"a": [], "b": ["sampling=uniform"]}, folds=3)
    assert check_equal(made, expand(made, OUT)) == "equal: every arm takes 8 updates in all"


def test_only_the_stage_and_the_tasks_that_a_run_goes_on_from_count() -> None:
    alone = ["init.from=arm:start", "init.stage=single", "stages=[finetune]", "finetune.training.updates=3"]
    arms = {
        "start": ["stages=[single,joint]", "single.training.updates=8", "joint.training.updates=50"],
        "all": alone,
        "two": [*alone, "tasks=[mini/entail2,mini/similarity]", "finetune.training.updates=4"],
        "joint": ["stages=[joint]", "training.updates=33"],
    }
    with pytest.raises(ConfigError, match="two: updates 24") as caught:
        checked("updates", arms)
    assert "all: updates 33" in str(caught.value)
    arms["two"] = [*arms["two"], "init.task=mini/entail2"]
    with pytest.raises(ConfigError, match="two: updates 32"):
        checked("updates", arms)


def test_examples_of_a_task_count_where_it_is_trained() -> None:
    rows = ["training.rows_per_update=30", "stages=[joint]"]
    arms: dict[str, Any] = {
        "three": [*rows, "sampling=uniform"],
        "two": [*rows, "sampling=uniform", "tasks=[mini/entail2,mini/similarity]", "training.rows_per_update=20"],
    }
    assert "as often in every arm that trains it" in checked("target_examples", arms)
    arms["two"] = [*arms["two"], "training.updates=9"]
    with pytest.raises(ConfigError, match="two: mini/entail2 90 examples"):
        checked("target_examples", arms)


def test_what_cannot_be_known_is_said() -> None:
    assert "not checked" in checked("total_tokens", {"a": JOINT})
    tokens = ["training.tokens_per_update=500", "training.epochs=1"]
    assert "not checked, since updates are sized in tokens in b" in checked("updates", {"a": JOINT, "b": tokens})
    assert checked("none", {"a": JOINT, "b": tokens}) == "nothing is held equal between the arms"


def test_missing_data_are_an_error_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"glue/rte"):
        checked("updates", {"a": JOINT, "b": [*JOINT, "tasks=[glue/rte]", f"data.root={tmp_path}"]})
