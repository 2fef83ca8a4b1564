"""Learning curves: what each training lost and scored on its way, from ``metrics.jsonl``."""

import json
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtl.errors import ConfigError, DataError
from mtl.studies.find import FoundRun
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.scored_arms import Arm
from mtl.studies.table import in_suite_order
from mtl.tasks import registry

WINDOWS = 40
"""A curve has no more points than this: each is the mean over as many successive records."""
LOSS = "loss"
# By the names in the log; scores on part of the rows cannot be taken for those on dev.
_KEYS = {
    "train/{task}/loss": LOSS,
    "eval/{task}/primary": "dev score",
    "eval_holdout/{task}/primary": "holdout score",
    "eval_subset/{task}/primary": "score on part of dev",
}


@dataclass(frozen=True)
class CurvePoint:
    """One run's ``quantity`` (``loss``, or what was scored) for one task, after ``updates`` updates of its training.

    A loss is the mean over the updates since the point before. ``number`` is the arm's place among all.
    """

    task: str
    quantity: str
    arm: str
    number: int
    seed: int
    updates: int
    value: float


def curves(source: Source) -> Drawing:
    """The curves of all runs that kept their log."""
    found = _all_points(source.arms)
    points = curve_points(source.arms)
    missing = []
    for arm in source.arms:
        seeds = [str(run.result.seed) for run in arm.runs if not any(path.is_file() for _, path in _logs(arm, run))]
        missing += [f"no metrics.jsonl in the runs of {arm.name}, seed {', '.join(seeds)}"] if seeds else []
    drawn = {(point.task, point.quantity) for point in points}
    once = dict.fromkeys(f"{point.task} ({point.quantity})" for point in found if not _is_in(point, drawn))
    missing += [f"scored no more than once in a training, so without a curve: {', '.join(once)}"] if once else []
    caption = (
        "Training loss, and scores where a training was scored more than once, over the updates of each arm's own "
        "training. Thick: mean over seeds; faint: seeds. Losses are means over the updates since the point before."
    )
    return Drawing(points, caption, tuple(missing))


def curve_points(arms: Sequence[Arm]) -> list[CurvePoint]:
    """Losses of all tasks, and the scores that some training had more than one of, tasks in their suites' order.

    ConfigError where no run has its log, DataError where a log is damaged.
    """
    found = _all_points(arms)
    lengths = Counter((point.task, point.quantity, point.arm, point.seed) for point in found)
    drawn = {(task, quantity) for (task, quantity, _, _), length in lengths.items() if length > 1 or quantity == LOSS}
    order = in_suite_order([run.result for arm in arms for run in arm.runs])
    return sorted((point for point in found if _is_in(point, drawn)), key=lambda point: order.index(point.task))


def _is_in(point: CurvePoint, drawn: Collection[tuple[str, str]]) -> bool:
    return (point.task, point.quantity) in drawn


def _all_points(arms: Sequence[Arm]) -> list[CurvePoint]:
    found = [point for number, arm in enumerate(arms) for run in arm.runs for point in _of_run(arm, number, run)]
    if not found:
        raise ConfigError(
            "learning curves need the metrics.jsonl that a training writes, and no run here has it: where results were "
            "copied without it, draw them from the original runs"
        )
    return found


def _logs(arm: Arm, run: FoundRun) -> list[tuple[tuple[str, ...], Path]]:
    """The tasks of each training of the arm's stage in this run, and where its log would be."""
    tasks = tuple(task for task in arm.record(run).tasks)
    if arm.stage == "joint":
        return [(tasks, run.directory.stage("joint").metrics)]
    trained = [task for task in tasks if task not in registry.names() or not registry.get(task).evaluate_only]
    return [((task,), run.directory.stage(arm.stage, task).metrics) for task in trained]


def _of_run(arm: Arm, number: int, run: FoundRun) -> Iterator[CurvePoint]:
    for tasks, path in _logs(arm, run):
        records = _read(path) if path.is_file() else []
        for task in tasks:
            for key, quantity in _KEYS.items():
                name = key.format(task=task)
                series = [(int(record["step"]), float(record[name])) for record in records if name in record]
                for updates, value in _thinned(series, means=quantity == LOSS):
                    yield CurvePoint(task, quantity, arm.name, number, run.result.seed, updates, value)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}; delete it, and curves are drawn without it") from error
    if not all(isinstance(record, dict) and "step" in record for record in records):
        raise DataError(f"{path} is damaged: a record has no step; delete it, and curves are drawn without it")
    return records


def _thinned(series: Sequence[tuple[int, float]], *, means: bool) -> list[tuple[int, float]]:
    """At most ``WINDOWS`` points: means over successive records, or, of scores, the last record of each window."""
    windows = [part for part in np.array_split(np.arange(len(series)), WINDOWS) if part.size]
    found = []
    for part in windows:
        values = [series[place][1] for place in part]
        found.append((series[part[-1]][0], statistics.fmean(values) if means else values[-1]))
    return found
