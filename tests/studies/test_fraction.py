import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from synthetic_results import a_result

from mtl.errors import ConfigError
from mtl.records import ResultRecord
from mtl.rundir import RunDirectory
from mtl.studies.find import FoundRun
from mtl.studies.pictures.fraction import FractionPoint, fraction, fraction_points, saved
from mtl.studies.pictures.picture import Source
from mtl.studies.scored_arms import Arm


def arm(name: str, stage: str, rows: int, scores: Mapping[int, float], other: str | None = None) -> Arm:
    """Runs by seed, of glue/rte trained on ``rows`` examples, and where named of another task on 5,000."""
    runs = []
    for seed, score in scores.items():
        tasks = (("glue/rte", score, 277, 277), *(((other, 50.0, 100, 100),) if other else ()))
        document = a_result({stage: tasks}, seed=seed, arm=name).model_dump(by_alias=True)
        for task, record in document["stages"][stage]["tasks"].items():
            record["train_rows"] = rows if task == "glue/rte" else 5000
        result = ResultRecord.model_validate(document)
        runs.append(FoundRun(RunDirectory(Path("nowhere")), result))
    return Arm(name, name, stage, tuple(runs))  # type: ignore[arg-type]


SINGLE = [
    arm(f"single-{rows}", "single", rows, {1: s - 1, 2: s + 1}) for rows, s in ((100, 60.0), (200, 70.0), (400, 80.0))
]
JOINT = [
    arm(f"joint-{rows}", "joint", rows, {1: s, 2: s}, "glue/mnli")
    for rows, s in ((100, 70.0), (200, 75.0), (400, 85.0))
]


def test_a_score_is_worth_as_many_examples_as_the_task_alone_needs_for_it() -> None:
    points = {point.arm: point for point in fraction_points([*JOINT, *SINGLE])}
    assert points["joint-100"].single_rows == pytest.approx(200)
    # Half way up from 70 to 80: half way in the logarithm of rows.
    assert points["joint-200"].single_rows == pytest.approx(math.sqrt(200 * 400))
    assert points["joint-400"].single_rows is None
    assert points["single-200"].single_rows is None
    assert {point.line for point in points.values()} == {"single", "joint"}
    assert saved(list(points.values())) == points["joint-200"]


def test_only_tasks_whose_examples_vary_have_a_curve() -> None:
    assert {point.target for point in fraction_points([*SINGLE, *JOINT])} == {"glue/rte"}
    with pytest.raises(ConfigError, match="all arms here train on the same"):
        fraction_points([SINGLE[0], JOINT[0]])


def test_what_is_no_better_saves_nothing() -> None:
    worse = [arm(f"joint-{rows}", "joint", rows, {1: 50.0}, "glue/mnli") for rows in (100, 200)]
    drawing = fraction(Source((*SINGLE, *worse)))
    assert saved(drawing.points) is None
    assert any("so there is no arrow" in line for line in drawing.missing)
    assert "joint-100 has one run, so no interval" in drawing.missing


def test_joint_trainings_with_other_tasks_are_other_lines() -> None:
    other = [arm(f"qqp-{rows}", "joint", rows, {1: 50.0}, "glue/qqp") for rows in (100, 200)]
    lines = {point.arm: point.line for point in fraction_points([*SINGLE, *JOINT, *other])}
    assert (lines["joint-100"], lines["qqp-200"]) == ("joint with glue/mnli", "joint with glue/qqp")


def test_a_place_on_a_line_is_for_one_arm() -> None:
    with pytest.raises(ConfigError, match=r"joint-100 and again both train glue/rte on 100 examples"):
        fraction_points([*SINGLE, *JOINT, arm("again", "joint", 100, {1: 1.0}, "glue/mnli")])


def test_other_rows_scored_are_refused() -> None:
    document = JOINT[0].runs[0].result.model_dump(by_alias=True)
    document["stages"]["joint"]["tasks"]["glue/rte"]["splits"]["dev"]["rows_sha256"] = "0" * 64
    strange = FoundRun(RunDirectory(Path("nowhere")), ResultRecord.model_validate(document))
    with pytest.raises(ConfigError, match="different rows"):
        fraction(Source((*SINGLE, Arm("joint-100", "joint-100", "joint", (strange,)), *JOINT[1:])))


def test_a_point_has_its_interval() -> None:
    point = next(point for point in fraction_points([*SINGLE, *JOINT]) if point.arm == "single-100")
    # t with 1 degree of freedom 12.706; standard error 1.
    assert point == FractionPoint(
        "glue/rte", "single", "single", "single-100", 100, 60.0, point.low, point.high, (59.0, 61.0)
    )
    assert point.low == pytest.approx(60 - 12.7062, abs=1e-3)
