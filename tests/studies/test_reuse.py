"""A run that another study has finished is copied, and only the same run."""

from pathlib import Path

import pytest
from test_conduct import ARMS, PlayedLauncher, carry_out, complete
from test_expand import study

from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.reuse import take_over_finished
from mtl.studies.run_state import state_of
from mtl.studies.study_files import Claims, StudyDirectory, write_study


def finished(out: Path, **parts: object) -> tuple[PlannedRun, ...]:
    spec = study(**{"arms": ARMS, **parts})
    runs = expand(spec, out)
    write_study(StudyDirectory(out), spec, runs)
    carry_out(out, PlayedLauncher(complete), **parts)
    return runs


def test_only_the_same_runs_are_taken_over(tmp_path: Path) -> None:
    before = finished(tmp_path / "before", seeds=[1, 2])
    runs = expand(study(arms={**ARMS, "c": ["sampling=round_robin"]}, seeds=[2, 3]), tmp_path / "now")
    assert take_over_finished(runs, StudyDirectory(tmp_path / "now"), [tmp_path / "before"]) == 2
    assert {run.title for run in runs if state_of(run.directory) == "complete"} == {"a, seed 2", "b, seed 2"}
    (source,) = (run.directory for run in before if run.title == "a, seed 2")
    (copy,) = (run.directory for run in runs if run.title == "a, seed 2")
    assert RunDirectory(copy).result.read_bytes() == RunDirectory(source).result.read_bytes()
    assert RunDirectory(copy).log.read_text().endswith(f"taken over from {source}\n")
    assert not list(copy.parent.glob(".*"))


def test_other_settings_and_another_data_root_are_another_run(tmp_path: Path) -> None:
    finished(tmp_path / "before")
    for change in ("training.updates=7", f"data.root={tmp_path}"):
        runs = expand(study(arms=ARMS, overrides=[change]), tmp_path / "now")
        assert take_over_finished(runs, StudyDirectory(tmp_path / "now"), [tmp_path / "before"]) == 0


def test_what_is_begun_or_claimed_here_is_left_alone(tmp_path: Path) -> None:
    finished(tmp_path / "before", seeds=[1])
    directory = StudyDirectory(tmp_path / "now")
    runs = expand(study(arms=ARMS, seeds=[1]), directory.path)
    begun, claimed = runs
    begun.directory.mkdir(parents=True)
    RunDirectory(begun.directory).config.write_text("seed: 1\n")
    claims = Claims(directory)
    assert claims.take(claimed)
    assert take_over_finished(runs, directory, [tmp_path / "before"]) == 0
    claims.release_all()
    assert take_over_finished(runs, directory, [tmp_path / "before"]) == 1
    assert not RunDirectory(begun.directory).result.exists()


def test_a_directory_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no study\.yaml"):
        take_over_finished((), StudyDirectory(tmp_path), [tmp_path / "nothing"])
