"""A study's own folders name its arms, and its committed comparison is what the files beside it give."""

import re
from pathlib import Path

from run_directories import write_run

from mtl import api
from mtl.records import read_result, write_result
from mtl.studies.find import find_runs
from mtl.studies.scored_arms import find_arm, scored_arms
from mtl.studies.spec import read_study


def test_runs_with_a_hash_in_their_folder_are_arms_by_name(tmp_path: Path) -> None:
    for name in ("even", "skewed"):
        for seed in (1, 2):
            write_run(tmp_path / "runs" / name / f"seed-{seed}-0123abc{seed}", name[0], seed)
    labels = {arm.label for arm in scored_arms(find_runs([tmp_path / "runs"]))}
    assert labels == {"even", "skewed"}


def test_an_arm_of_one_stage_is_called_by_its_name_beside_arms_of_several(tmp_path: Path) -> None:
    for arm, stages in {"single": ("single",), "joint": ("joint", "finetune"), "longer": ("joint", "finetune")}.items():
        write_run(tmp_path / arm / "seed-1", arm[0], 1, stage=stages[0])
        if len(stages) > 1:
            add_stage(tmp_path / arm / "seed-1", stages[1])
    arms = scored_arms(find_runs([tmp_path]))
    assert {arm.name for arm in arms} == {"single", "joint", "joint:finetune", "longer:joint", "longer:finetune"}
    assert find_arm(arms, "joint:joint") is find_arm(arms, "joint")
    assert find_arm(arms, "joint").stage == "joint"


def add_stage(path: Path, stage: str) -> None:
    """The run at ``path`` has scored the same in another stage."""
    found = read_result(path / "result.json")
    stages = {**found.stages, stage: next(iter(found.stages.values()))}
    write_result(path / "result.json", found.model_copy(update={"stages": stages}))


def test_the_readme_shows_what_make_quickstart_printed(repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(Scores\n.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    assert api.table(repository / "results" / "quickstart").startswith(shown)


def test_the_committed_quickstart_is_the_study_that_make_carries_out(repository: Path) -> None:
    ran = read_study(repository / "results" / "quickstart" / "study.yaml")
    assert ran == read_study(repository / "experiments" / "quickstart.yaml")
