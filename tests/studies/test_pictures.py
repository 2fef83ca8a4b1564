import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from run_directories import write_run, write_study

from mtl import api
from mtl.errors import ConfigError
from mtl.studies.find import find_runs
from mtl.studies.pictures import PICTURES
from mtl.studies.pictures.cost import cost_points
from mtl.studies.pictures.epochs import epochs_points
from mtl.studies.pictures.forest import forest_points, shown_range
from mtl.studies.pictures.picture import Source
from mtl.studies.pictures.registry import REGISTRY, drawings
from mtl.studies.pictures.save import COLOURS, MARKERS, WIDTHS, style
from mtl.studies.pictures.sweep import sweep_points
from mtl.studies.scored_arms import scored_arms
from mtl.studies.statistics.mean import interval_of_mean
from mtl.studies.study_table import StudyTable, study_table


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_study(tmp_path_factory.mktemp("study"), {"alone": 0.0, "mixed": 0.1, "tuned": 0.6})
    for arm, sampling in (("alone", "{kind: temperature, temperature: 5}"), ("tuned", "{kind: uniform}")):
        for config in path.glob(f"{arm}/seed-*"):
            (config / "config.yaml").write_text(f"tasks: [glue]\nsampling: {sampling}\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def table(study: Path) -> StudyTable:
    return study_table(scored_arms(find_runs([study])), "alone")


def test_a_picture_is_seven_files_the_same_each_time(study: Path, tmp_path: Path) -> None:
    picture = "cost"
    first, second = (api.plot(picture, study, tmp_path / name, baseline="alone").files for name in ("one", "other"))
    assert [path.name for path in first] == [
        f"{picture}.csv",
        *(f"{picture}-{width}.{suffix}" for width in WIDTHS for suffix in ("svg", "pdf", "png")),
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    for path, points in zip((first[1], first[4]), (3.3 * 72, 6.8 * 72), strict=True):
        width = re.search(r'<svg[^>]* width="([\d.]+)pt"', path.read_text(encoding="utf-8"))
        assert width is not None
        assert float(width[1]) == pytest.approx(points, abs=0.5)


def test_the_numbers_of_the_forest_are_those_of_the_table(table: StudyTable, study: Path, tmp_path: Path) -> None:
    path = api.plot("forest", study, tmp_path, baseline="alone").files[0]
    lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(lines) == len(table.comparisons)
    for line in lines:
        found = next(
            each for each in table.comparisons if each.arm == line["arm"] and line["row"].split(" ")[0] == each.row.name
        )
        assert found.estimate is not None
        shown = [float(line[name]) for name in ("low", "high", "detectable")]
        assert shown == pytest.approx([found.estimate.low, found.estimate.high, found.detectable], rel=1e-11)
        assert line["distinguishable"] == str(int(found.distinguishable))


def test_tasks_come_by_training_size_and_suites_last(tmp_path: Path) -> None:
    rows = [point.row for point in forest_points(study_of_sizes(tmp_path))]
    assert list(dict.fromkeys(rows)) == ["glue/rte", "glue/cola", "glue (mean of 2)"]


def study_of_sizes(path: Path) -> StudyTable:
    runs = find_runs([write_study(path, {"alone": 0.0, "tuned": 0.6}, names=("glue/cola", "glue/rte"))])
    sized = []
    for run in runs:
        result = run.result.model_dump(by_alias=True)
        result["stages"]["joint"]["tasks"]["glue/rte"]["train_rows"] = 50
        sized.append(replace(run, result=run.result.model_validate(result)))
    return study_table(scored_arms(sized), "alone")


def test_without_a_test_there_is_no_forest(tmp_path: Path) -> None:
    for name in ("alone", "tuned"):
        write_run(tmp_path / name / "seed-1", name[0], 1)
    with pytest.raises(ConfigError, match=r"nothing could be tested.*has one run"):
        api.plot("forest", tmp_path, tmp_path / "out", baseline="alone")


def test_what_is_beaten_at_both_is_not_efficient(table: StudyTable) -> None:
    dear = replace(table.costs["mixed"], flops=5e9)
    found = {point.arm: point for point in cost_points(replace(table, costs={**table.costs, "mixed": dear}))}
    assert [found[name].efficient for name in ("alone", "mixed", "tuned")] == [False, False, True]
    assert found["tuned"].runs == 3
    cheap = replace(table.costs["alone"], flops=1e8)
    found = {point.arm: point for point in cost_points(replace(table, costs={**table.costs, "alone": cheap}))}
    assert found["alone"].efficient
    assert (found["alone"].low, found["alone"].high) == interval_of_mean(table.rows[-1].cells[0].values)  # type: ignore[union-attr]


def test_the_interval_of_a_mean() -> None:
    # t with 2 degrees of freedom: 4.3027; standard error 1 / sqrt(3).
    assert interval_of_mean([1.0, 2.0, 3.0]) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert interval_of_mean([1.0]) == (None, None)


def test_an_arm_has_a_colour_and_a_marker_of_its_own() -> None:
    assert len(set(COLOURS)) == len(COLOURS) == len(MARKERS)
    assert len({style(place) for place in range(49)}) == 49


def test_an_unknown_picture(study: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no picture 'pie'; there are forest, cost, sweep, transfer"):
        api.plot("pie", study, tmp_path, baseline="alone")


def test_a_sweep_has_a_place_for_each_temperature(table: StudyTable) -> None:
    points = {point.arm: point for point in sweep_points(table)}
    assert {arm: point.temperature for arm, point in points.items()} == {"alone": 5.0, "tuned": math.inf}
    assert points["alone"].panel == "tasks under 10,000 examples"
    assert points["alone"].scores == pytest.approx(table.rows[-1].cells[0].values)  # type: ignore[union-attr]


def test_a_cap_is_no_temperature(tmp_path: Path) -> None:
    path = write_study(tmp_path, {"alone": 0.0, "mixed": 0.1, "tuned": 0.6})
    for arm, sampling in (("alone", "{cap: 100}"), ("mixed", "{temperature: 2}"), ("tuned", "{kind: proportional}")):
        for run in path.glob(f"{arm}/seed-*"):
            (run / "config.yaml").write_text(f"tasks: [glue]\nsampling: {sampling}\n", encoding="utf-8")
    points = sweep_points(study_table(scored_arms(find_runs([path])), "alone"))
    assert {point.arm: point.temperature for point in points} == {"mixed": 2.0, "tuned": 1.0}


@pytest.mark.parametrize(("sizes", "large"), [("actual", 0), ("official", 1)])
def test_a_sweep_parts_tasks_by_the_sizes_that_its_sampler_counts(tmp_path: Path, sizes: str, large: int) -> None:
    path = write_study(tmp_path, {"alone": 0.0, "tuned": 0.6}, names=("glue/cola", "glue/rte"))
    for arm, temperature in (("alone", 2), ("tuned", 5)):
        for run in path.glob(f"{arm}/seed-*"):
            sampling = f"{{temperature: {temperature}, sizes: {sizes}}}"
            (run / "config.yaml").write_text(f"tasks: [glue]\nsampling: {sampling}\n", encoding="utf-8")
            result = json.loads((run / "result.json").read_text(encoding="utf-8"))
            result["stages"]["joint"]["tasks"]["glue/cola"]["train_rows_official"] = 20_000
            (run / "result.json").write_text(json.dumps(result), encoding="utf-8")
    points = sweep_points(study_table(scored_arms(find_runs([path])), "alone"))
    assert {point.panel: point.tasks for point in points} == {
        "tasks under 10,000 examples": 2 - large,
        **({"tasks of 10,000 and more": 1} if large else {}),
    }


def test_one_temperature_is_no_sweep(tmp_path: Path) -> None:
    runs = find_runs([write_study(tmp_path, {"alone": 0.0, "tuned": 0.6})])
    with pytest.raises(ConfigError, match="at least two sampling temperatures"):
        sweep_points(study_table(scored_arms(runs), "alone"))


def test_the_named_pictures_are_those_there_are() -> None:
    assert list(PICTURES) == list(REGISTRY)


def test_each_picture_is_drawn_or_says_why_not(table: StudyTable) -> None:
    found, reasons = drawings(Source(table.arms, table))
    assert set(found) == {"forest", "cost", "sweep", "probabilities", "epochs"}
    assert list(reasons) == ["transfer", "fraction", "curves"]
    assert "uncorrected" in found["cost"].caption
    assert "not corrected" in found["forest"].caption


def test_a_comparison_needs_a_baseline(study: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="add --baseline"):
        api.plot("forest", study, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_wide_band_does_not_hide_the_intervals(table: StudyTable) -> None:
    points = [replace(point, low=-3.0, high=5.0, detectable=400.0) for point in forest_points(table)]
    low, high = shown_range(points)
    assert -9 < low < -7
    assert 7 < high < 9


def test_epochs_count_what_was_drawn_of_a_task(table: StudyTable) -> None:
    found = {(point.task, point.arm): point for point in epochs_points(table)}
    # Of 100 rows each, 8 + 4 and 8 + 12 examples were drawn; of glue/stsb none.
    tuned = {task: point.epochs for (task, arm), point in found.items() if arm == "tuned"}
    assert tuned == pytest.approx({"glue/cola": 0.12, "glue/rte": 0.2})
    expected = next(each for each in table.comparisons if (each.row.name, each.arm) == ("glue/rte", "tuned"))
    assert found["glue/rte", "tuned"].difference == expected.difference
