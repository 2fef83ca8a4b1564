import shutil
from pathlib import Path

import numpy as np
import pytest

from mtl.errors import ConfigError
from mtl.studies.find import find_runs
from mtl.studies.pictures.picture import Source
from mtl.studies.pictures.probabilities import SharePoint, probabilities
from mtl.studies.run_settings import settings_of
from mtl.studies.scored_arms import scored_arms

STUDY = Path(__file__).parents[2] / "results" / "mini_sampling"


@pytest.fixture(scope="module")
def points() -> list[SharePoint]:
    drawing = probabilities(Source(scored_arms(find_runs([STUDY]))))
    assert drawing.missing == ()
    return list(drawing.points)


def test_shares_are_those_of_the_sequences(points: list[SharePoint]) -> None:
    counts = []
    for run in sorted((STUDY / "runs" / "t2").iterdir()):
        with np.load(run / "joint" / "sequence.npz") as kept:
            tasks, found = list(kept["task_names"]), kept["counts"]
        first = found[:8].sum(axis=0)
        counts.append(first / first.sum())
    mine = {point.task: point for point in points if (point.arm, point.start, point.end) == ("t2", 0, 8)}
    assert {task: point.share for task, point in mine.items()} == pytest.approx(
        dict(zip(tasks, np.mean(counts, axis=0), strict=True))
    )
    assert mine["mini/entail3"].lowest == pytest.approx(np.min(counts, axis=0)[tasks.index("mini/entail3")])


def test_what_was_planned_follows_from_the_study(points: list[SharePoint]) -> None:
    planned = {(point.arm, point.task): point.planned for point in points if point.start == 0}
    assert planned["uniform", "mini/entail2"] == pytest.approx(1 / 6)
    sizes = {"entail3": 10000, "entail2": 200, "paraphrase": 2000, "similarity": 800, "acceptability": 1000}
    rows = np.array([*sizes.values(), 2000], dtype=float)
    assert planned["proportional", "mini/entail3"] == pytest.approx(10000 / rows.sum())
    assert planned["t5", "mini/entail3"] == pytest.approx(10000**0.2 / (rows**0.2).sum())
    for arm in ("t5", "uniform"):
        ends = [sum(p.share for p in points if (p.arm, p.start) == (arm, start)) for start in (0, 192)]
        assert ends == pytest.approx([1, 1])


def test_without_settings_the_plan_is_said_to_be_missing(tmp_path: Path) -> None:
    shutil.copytree(STUDY / "runs", tmp_path / "runs", ignore=shutil.ignore_patterns("seed-[345]-*", "predictions"))
    runs = find_runs([tmp_path])
    assert settings_of(runs[0]) is None
    drawing = probabilities(Source(scored_arms(runs)))
    assert all(point.planned is None for point in drawing.points)
    assert len(drawing.missing) == 5
    assert "study.yaml" in drawing.missing[0]


def test_without_sequences_there_are_no_shares(tmp_path: Path) -> None:
    shutil.copytree(STUDY / "runs" / "t5", tmp_path / "t5", ignore=shutil.ignore_patterns("*.npz", "predictions"))
    with pytest.raises(ConfigError, match=r"no sequence\.npz of joint, seed 1"):
        probabilities(Source(scored_arms(find_runs([tmp_path]))))
