"""What a page tells of a study: its answer, what limits it, and what is missing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from report_reader import Reader, read
from run_directories import write_run
from study_directories import ARMS, GAINS, TASKS, runs_of, write_planned_study

from mtl import api
from mtl.errors import ConfigError, DataError
from mtl.records import read_result, write_result
from mtl.studies.opened import open_study
from mtl.studies.report.answer import answer
from mtl.studies.report.caveats import shuffling
from mtl.studies.report.content import gather
from mtl.studies.report.page import report_page
from mtl.studies.run_state import Failure, note_failure
from mtl.studies.statistics.best_of_trials import expected_best


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planned_study(tmp_path_factory.mktemp("study"))


def test_the_answer_has_the_numbers_of_the_table(study: Path) -> None:
    content = gather(open_study(study))
    assert content.table is not None
    found = next(each for each in content.table.comparisons if each.primary)
    assert found.estimate is not None
    told = answer(content)
    assert told.verdict == "better"
    low, high = f"{found.estimate.low:+.1f}", f"{found.estimate.high:+.1f}"
    p = found.estimate.p_value
    shown = "< 0.001" if p < 0.001 else f"= {p:.3f}"
    assert told.sentence == (
        f"tuned scores {found.difference:.1f} points more than alone on glue, the mean of 3 (95% interval {low} to "
        f"{high}; Welch t-test, p {shown}; 3 seeds each)."
    )


def test_what_is_not_distinguishable_comes_with_what_could_have_been_found(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, primary={"arm": "mixed", "score": "glue"})
    content = gather(open_study(path))
    assert content.table is not None
    found = next(each for each in content.table.comparisons if each.primary)
    assert found.detectable is not None
    told = answer(content)
    assert told.verdict == "not distinguishable"
    assert f"Only a true difference of {found.detectable:.1f} points or more would have been found" in told.sentence
    assert ("detectable", f"{found.detectable:.1f} points") in told.facts
    assert "does not show that they are equal" in read(path).text


def test_a_worse_arm_is_called_worse(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, gains={**GAINS, "tuned": -0.9})
    told = answer(gather(open_study(path)))
    assert told.verdict == "worse"
    assert "points less than alone" in told.sentence


def test_one_seed_is_not_tested(tmp_path: Path) -> None:
    told = answer(gather(open_study(write_planned_study(tmp_path, seeds=1))))
    assert told.verdict == "not tested"
    assert "no variance over seeds" in told.sentence


def test_without_a_primary_comparison_all_is_exploratory(tmp_path: Path) -> None:
    page = read(write_planned_study(tmp_path, primary=None))
    assert "No primary comparison was named before the runs" in page.text
    assert "Differences to alone, in points" in page.text


def test_every_part_is_there(study: Path) -> None:
    page = read(study, pictures=True)
    named = {attributes.get("id") for name, attributes in page.elements if name == "section"}
    assert {"answer", "caveats", "pictures", "scores", "differences", "costs", "runs", "settings", "reading"} <= named
    for told in ("joined", "Does tuning help?", "all 9 runs complete", "target examples", "FLOPs", "seed 3"):
        assert told in page.text
    assert "sampling.temperature: 4.0 → 5.0" in page.text
    pictures = [attributes for name, attributes in page.elements if name == "img"]
    assert len(pictures) >= 2
    assert page.text.count("95% intervals") >= 2, "each picture says what it shows"


@pytest.mark.parametrize("without", [["tuned"], ["alone"], ["alone", "mixed"], list(ARMS), [("tuned", 3)]])
def test_half_finished_studies_say_what_is_missing(without: list[Any], tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, without=without)
    page = read(path)
    missing = sum(3 if isinstance(each, str) else 1 for each in without)
    assert f"{9 - missing} of 9 runs complete" in page.text
    assert f"{missing} of 9 runs are not complete" in page.text
    assert page.text.count("not begun") >= missing
    if without != [("tuned", 3)]:
        assert re.search(r"cannot\s+be made yet: no run (of|has)", page.text)
    else:
        assert "3 and 2 seeds" in page.text or "2 and 3 seeds" in page.text


def test_without_its_primary_arm_the_other_arms_are_compared_already(tmp_path: Path) -> None:
    content = gather(open_study(write_planned_study(tmp_path, without=["tuned"])))
    assert content.table is not None
    assert {each.arm for each in content.table.comparisons} == {"mixed"}
    assert content.no_primary == "no run of tuned has a result yet"


def test_failed_runs_are_told_with_what_they_said(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, without=[("mixed", 2)])
    lost = next(run for run in runs_of(path) if (run.arms[0], run.seed) == ("mixed", 2))
    note_failure(lost.directory, Failure(exit_code=4, message="the loss of glue/rte is not finite"))
    page = read(path)
    assert "the loss of glue/rte is not finite" in page.text
    assert "1 failed" in page.text


def test_a_run_that_stopped_is_counted_and_called_incomplete(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path)
    file = runs_of(path)[0].directory / "result.json"
    write_result(file, read_result(file).model_copy(update={"status": "stopped"}))
    page = read(path)
    assert "8 of 9 runs complete" in page.text
    assert "the run of seed 1 is not complete: stopped" in page.text


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "some/encoder was trained on SNLI"),
        ({"selected_on": "dev"}, "weights were selected on the rows they are scored on"),
    ],
)
def test_caveats_are_marked(settings: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in read(write_planned_study(tmp_path, run=settings)).text


def test_partial_data_and_flags_are_marked(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path)
    for run in runs_of(path):
        file = run.directory / "result.json"
        result = json.loads(file.read_text(encoding="utf-8"))
        result["partial"] = True
        split = result["stages"]["joint"]["tasks"]["glue/rte"]["splits"]["dev"]
        split |= {"rows_official": 277, "flags": ["one class only"]}
        file.write_text(json.dumps(result), encoding="utf-8")
    page = read(path)
    assert "not comparable to published scores" in page.text
    assert "glue/rte dev: 200 rows, the official release has 277" in page.text
    assert "alone: glue/rte dev: one class only, seed 1, 2, 3" in page.text


def test_shuffled_labels_are_found_whatever_the_setting_is_called() -> None:
    document = {"data": {"shuffle_labels": ["glue/mnli"], "max_length": 128}, "tasks": {"permuted": {"labels": False}}}
    assert shuffling(document) == ["data.shuffle_labels = ['glue/mnli']"]
    assert shuffling({"data": {"shuffle_labels": []}, "labels": {"shuffled": False}, "shuffle": True}) == []


def test_arms_that_mean_different_things_are_not_compared_and_the_page_says_why(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path)
    for run in runs_of(path):
        if run.arms[0] == "mixed":
            write_run(run.directory, "m", run.seed, names=TASKS, rows="e" * 64)
    page = read(path)
    assert "were scored on different rows of dev" in page.text
    assert "There are none to show" in page.text
    with pytest.raises(ConfigError, match="different rows"):
        api.table(path)


def test_differences_that_are_allowed_are_marked(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path, without=["mixed"])
    for run in runs_of(path):
        if run.arms[0] == "mixed":
            write_run(run.directory, "m", run.seed, names=TASKS, data="e" * 64)
    page = Reader(report_page(gather(open_study(path), ["data"]), ["data"]))
    assert "Compared although they differ" in page.text
    assert "trained on different files" in page.text


def test_arms_of_a_grid_are_trials(tmp_path: Path) -> None:
    study = {"arms": None, "grid": {"sampling.temperature": ["1", "2", "5"]}, "baseline": None, "primary": None}
    names = ("temperature=1", "temperature=2", "temperature=5")
    path = tmp_path / "study"
    write_planned_study(path, without=names, **study)
    scores = []
    for place, run in enumerate(runs_of(path)):
        write_run(run.directory, "abc"[place // 3], run.seed, gain=0.3 * (place // 3), names=("glue/rte", "glue/sst2"))
        scores.append(read_result(run.directory / "result.json").stages["joint"].suites["glue"].score or 0.0)
    means = [sum(scores[place : place + 3]) / 3 for place in (0, 3, 6)]
    page = read(path)
    assert "Expected best of k trials, glue, joint" in page.text
    for value in expected_best(means):
        assert f"{value:.1f}" in page.text
    assert f"Best of 3: temperature=5, {max(means):.1f}; its sampling.temperature, 5, is the end" in page.text
    assert "Best of fewer trials" not in read(write_planned_study(tmp_path / "arms")).text


def test_the_best_of_a_grid_is_found_among_arms_that_share_runs_or_are_several(tmp_path: Path) -> None:
    grid = {"logging.every": ["1", "2"], "sampling.temperature": ["1", "2", "5"]}
    path = tmp_path / "study"
    named = {"arms": None, "grid": grid, "baseline": None, "primary": None}
    write_planned_study(path, gains={"every=1,temperature=5": 0.6}, **named)
    for run in runs_of(path):
        arm = "abc"["125".index(run.arms[0][-1])]
        other = run.arms[0] == "every=1,temperature=5" and run.seed == 3
        gain = 0.6 if arm == "c" else 0.0
        write_run(run.directory, "d" if other else arm, run.seed, gain=gain, names=("glue/rte", "glue/sst2"))
    text = read(path).text
    assert "Best of 4: every=1,temperature=5 (" in text
    assert "its sampling.temperature, 5, is the end of the list 1, 2, 5" in text


def test_what_runs_noted_of_their_machine_is_told(tmp_path: Path) -> None:
    path = write_planned_study(tmp_path)
    for place, run in enumerate(runs_of(path)):
        noted = {
            "versions": {"torch": "2.9" if place else "2.8"},
            "git_commit": "abc123",
            "device": "cpu",
            "threads": 2,
        }
        file = run.directory / "environment.json"
        file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | noted), encoding="utf-8")
    page = read(path)
    assert "abc123" in page.text
    assert "2.8 (1 of 9 runs); 2.9 (8 of 9 runs)" in page.text
    (runs_of(path)[0].directory / "environment.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"environment\.json is damaged"):
        read(path)


def test_the_committed_study(repository: Path) -> None:
    page = read(repository / "results" / "mini_sampling")
    assert (
        "t5 is not distinguishable from proportional on mini, the mean of 6: the difference is −1.4 points" in page.text
    )
    assert "95% interval −6.8 to +4.0; Welch t-test, p = 0.539; 5 seeds each" in page.text
    assert "Only a true difference of 7.4 points or more" in page.text
    assert "all 25 runs complete" in page.text


def test_an_arm_that_differs_only_in_what_it_starts_from_says_so(tmp_path: Path) -> None:
    arms = {**ARMS, "later": ["init.from=arm:mixed"], "elsewhere": ["init.from=runs/before"]}
    page = read(write_planned_study(tmp_path, arms=arms))
    assert "init.from: not set → arm:mixed" in page.text
    assert "init.from: not set → runs/before" in page.text
