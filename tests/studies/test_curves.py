import json
import math
from pathlib import Path
from typing import Any

import pytest
from run_directories import write_study

from mtl.errors import ConfigError, DataError
from mtl.studies.find import find_runs
from mtl.studies.pictures.curves import WINDOWS, curve_points, curves
from mtl.studies.pictures.picture import Source
from mtl.studies.scored_arms import scored_arms

LOSS = "train/glue/cola/loss"


def log(path: Path, records: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    (path / "joint" / "metrics.jsonl").write_text(text, encoding="utf-8")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path, {"alone": 0.0, "mixed": 0.1}, seeds=(1, 2))


def source(study: Path) -> Source:
    return Source(scored_arms(find_runs([study])))


def test_losses_are_means_and_scores_are_drawn_where_there_are_several(study: Path) -> None:
    losses = [{"step": step, LOSS: float(step)} for step in range(1, 101)]
    scores = [{"step": step, "eval_holdout/glue/cola/primary": 50.0 + step} for step in (50, 100)]
    log(study / "alone" / "seed-1", [*losses, *scores, {"step": 100, "eval/glue/cola/primary": 77.0}])
    drawing = curves(source(study))
    points = [point for point in drawing.points if point.quantity == "loss"]
    assert len(points) == WINDOWS
    # Windows of three and of two records.
    assert [(point.updates, point.value) for point in points[:2]] == [(3, 2.0), (6, 5.0)]
    assert [(point.updates, point.value) for point in points[-1:]] == [(100, 99.5)]
    held = [(point.updates, point.value) for point in drawing.points if point.quantity == "holdout score"]
    assert held == [(50, 100.0), (100, 150.0)]
    assert {point.quantity for point in drawing.points} == {"loss", "holdout score"}
    assert drawing.missing == (
        "no metrics.jsonl in the runs of alone, seed 2",
        "no metrics.jsonl in the runs of mixed, seed 1, 2",
        "scored no more than once in a training, so without a curve: glue/cola (dev score)",
    )


def test_a_loss_that_is_not_finite_stays_so(study: Path) -> None:
    log(study / "alone" / "seed-1", [{"step": 1, LOSS: 1.0}, {"step": 2, LOSS: "NaN"}])
    values = [point.value for point in curve_points(source(study).arms)]
    assert values[0] == 1.0
    assert math.isnan(values[1])


def test_without_logs_there_are_no_curves(study: Path) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.jsonl that a training writes, and no run here has it"):
        curves(source(study))


@pytest.mark.parametrize("text", ['{"step": 1', "[1]\n", "{}\n"])
def test_a_damaged_log_is_named(text: str, study: Path) -> None:
    path = study / "alone" / "seed-1" / "joint" / "metrics.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"metrics\.jsonl is damaged"):
        curves(source(study))
