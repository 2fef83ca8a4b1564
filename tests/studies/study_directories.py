"""Directories of studies that never took place: the file, and runs where the study would have put them."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml
from run_directories import write_run

from mtl.studies.expand import PlannedRun, expand
from mtl.studies.spec import read_study

ARMS: Mapping[str, Any] = {
    "alone": [],
    "mixed": ["sampling=uniform"],
    "tuned": ["sampling=temperature", "sampling.temperature=5"],
}
GAINS = {"alone": 0.0, "mixed": 0.02, "tuned": 0.6}
TASKS = ("glue/sst2", "glue/qnli", "glue/rte")


def write_planned_study(
    path: Path,
    *,
    gains: Mapping[str, float] = GAINS,
    without: Collection[str | tuple[str, int]] = (),
    run: Mapping[str, Any] | None = None,
    **study: Any,
) -> Path:
    """The study, and its runs but those of the arms, or arms and seeds, in ``without``; the path.

    An arm's predictions are better by its gain. ``run`` are settings of ``write_run``, ``study`` keys of the file.
    """
    document = {
        "name": "joined",
        "question": "Does tuning help?",
        "base": "quickstart",
        "overrides": [f"tasks=[{','.join(TASKS)}]", "stages=[joint]", "training.updates=10"],
        "arms": ARMS,
        "seeds": 3,
        "baseline": "alone",
        "primary": {"arm": "tuned", "score": "glue"},
    } | study
    document = {key: value for key, value in document.items() if value is not None}
    path.mkdir(parents=True, exist_ok=True)
    (path / "study.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    for planned in runs_of(path):
        arm = planned.arms[0]
        if arm not in without and (arm, planned.seed) not in without:
            write_run(planned.directory, arm[0], planned.seed, gain=gains.get(arm, 0.0), names=TASKS, **(run or {}))
    return path


def runs_of(path: Path) -> tuple[PlannedRun, ...]:
    """Every run of the study at ``path``."""
    return expand(read_study(path / "study.yaml"), path)
