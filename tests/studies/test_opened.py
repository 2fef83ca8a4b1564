"""A study brings its own comparison, and tells how each of its runs stands."""

from pathlib import Path

import pytest
from run_directories import write_run
from study_directories import ARMS, runs_of, write_planned_study

from mtl import api
from mtl.cli import main
from mtl.errors import ConfigError, DataError
from mtl.studies.opened import is_study, open_study
from mtl.studies.run_state import Failure, note_failure


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planned_study(tmp_path_factory.mktemp("study"))


@pytest.mark.parametrize("layout", ["text", "md", "tex", "csv"])
def test_a_study_is_the_table_of_its_own_comparison(layout: str, study: Path) -> None:
    named = api.table(study / "runs", baseline="alone", primary=("tuned", "glue"), layout=layout)  # type: ignore[arg-type]
    assert api.table(study, layout=layout) == named  # type: ignore[arg-type]


def test_arms_come_in_the_order_of_the_study(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, arms=dict(reversed(ARMS.items())))
    assert [arm.name for arm in open_study(path).scored()] == ["tuned", "mixed", "alone"]


def test_the_command_line_needs_no_flags(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(study)]) == 0
    assert "primary comparison: tuned against alone by glue, tested alone" in capsys.readouterr().out


def test_flags_that_name_the_same_change_nothing(study: Path) -> None:
    assert api.table(study, baseline="alone", primary=("tuned", "glue")) == api.table(study)


@pytest.mark.parametrize(
    "flags", [{"baseline": "mixed"}, {"primary": ("mixed", "glue")}, {"primary": ("tuned", "glue/rte")}]
)
def test_a_comparison_that_was_named_before_is_not_replaced_after(flags: dict[str, object], study: Path) -> None:
    with pytest.raises(ConfigError, match=r"named before it ran \(tuned against alone by glue\)"):
        api.table(study, **flags)  # type: ignore[arg-type]


def test_an_exploratory_study_takes_a_baseline_but_no_primary_comparison(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, baseline=None, primary=None)
    assert api.table(path).count("arm ") == 3, "a block for each arm"
    assert "all are secondary: exploratory" in api.table(path, baseline="alone")
    with pytest.raises(ConfigError, match="no primary comparison"):
        api.table(path, baseline="alone", primary=("tuned", "glue"))


def test_pictures_take_the_studys_baseline(study: Path, tmp_path: Path) -> None:
    drawn = api.plot("forest", study, tmp_path)
    assert {point.baseline for point in drawn.drawing.points} == {"alone"}


def test_arms_that_share_their_runs_are_compared_by_either_name(tmp_path: Path) -> None:
    arms = {**ARMS, "again": ["sampling.kind=temperature", "sampling.temperature=5"]}
    path = write_planned_study(tmp_path, arms=arms, primary={"arm": "again", "score": "glue"})
    assert open_study(path).label("again") == "tuned"
    assert "primary comparison: tuned against alone by glue" in api.table(path)


def test_each_run_tells_how_it_stands(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, without=[("tuned", 2), "mixed"])
    runs = {(run.arms[0], run.seed): run for run in runs_of(path)}
    note_failure(runs["tuned", 2].directory, Failure(exit_code=4, message="a loss was not finite"))
    opened = {(run.arms[0], run.seed): run for run in open_study(path).runs}
    assert len(opened) == 9
    assert (opened["tuned", 2].state, opened["tuned", 2].failure) == ("failed", "a loss was not finite")
    assert {opened["mixed", seed].state for seed in (1, 2, 3)} == {"new"}
    assert opened["alone", 1].state == "complete"


def test_a_folder_with_the_hash_of_another_version_is_found(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path)
    directory = runs_of(path)[0].directory
    other = directory.with_name("seed-1-00000000")
    directory.rename(other)
    assert open_study(path).runs[0].directory == other
    write_run(directory.with_name("seed-1-11111111"), "a", 1)
    with pytest.raises(ConfigError, match="both runs of alone, seed 1"):
        open_study(path)


def test_what_is_no_study_says_so(tmp_path: Path, study: Path) -> None:
    assert is_study([study])
    assert not is_study([study, study])
    assert not is_study([study / "runs"])
    with pytest.raises(ConfigError, match=r"holds no study\.yaml"):
        open_study(tmp_path)


def test_a_study_without_a_result_says_so(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, without=list(ARMS))
    with pytest.raises(DataError, match="no run has a result yet; mtl study"):
        api.table(path)


def test_a_table_says_what_is_not_in_it(tmp_path: Path) -> None:
    again = {**ARMS, "again": ["sampling.kind=temperature", "sampling.temperature=5"]}
    shown = api.table(write_planned_study(tmp_path, arms=again, without=[("mixed", 2)]))
    assert "half finished: 1 of 9 runs are not complete" in shown
    assert "again: the same runs as tuned" in shown


def test_a_whole_study_has_nothing_to_say(study: Path) -> None:
    assert open_study(study).notes() == []
