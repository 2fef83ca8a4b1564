"""How often each task came up in joint training, against how often it was meant to."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig
from mtl.data.subsets import WHOLE
from mtl.data.task_sequence import TaskSequence
from mtl.errors import ConfigError
from mtl.sampling.registry import make_sampler
from mtl.stages.sizes import sampler_sizes, training_rows
from mtl.studies.find import FoundRun
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.run_settings import settings_of
from mtl.studies.scored_arms import Arm
from mtl.studies.sequences import sequences
from mtl.tasks import registry

WINDOWS = 25
"""A training is looked at in this many stretches of equal length, fewer where it is shorter."""

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SharePoint:
    """The share of ``task`` among the examples drawn in the updates from ``start`` up to ``end``, mean over runs.

    ``lowest`` and ``highest`` are over runs. ``planned`` is the mean of the sampler's probability over these updates;
    None where it is not known.
    """

    arm: str
    number: int
    task: str
    start: int
    end: int
    share: float
    lowest: float
    highest: float
    planned: float | None


def probabilities(source: Source) -> Drawing:
    """The shares of every arm that is a joint training of several tasks."""
    points, missing = [], []
    for number, arm in enumerate(source.arms):
        if arm.stage == "joint" and len(arm.tasks) > 1:
            found, told = _of_arm(arm, number)
            points += found
            missing += told
    if not points:
        raise ConfigError(
            "realised probabilities need joint training of several tasks, and its sequence.npz: "
            + ("; ".join(missing) or "there is no such arm")
        )
    caption = (
        "Share of each task among the examples drawn, in stretches of equal length over the training; mean over seeds. "
        "Dashed: the share that the sampler was to give."
    )
    return Drawing(points, caption, tuple(missing))


def _of_arm(arm: Arm, number: int) -> tuple[list[SharePoint], list[str]]:
    kept = [(run, _joint_sequence(arm, run)) for run in arm.runs]
    missing = [f"no sequence.npz of {arm.name}, seed {run.result.seed}" for run, found in kept if found is None]
    known = [(run, found) for run, found in kept if found is not None and len(found.counts)]
    if not known:
        return [], missing
    longest = max(len(found.counts) for _, found in known)
    whole = [(run, found) for run, found in known if len(found.counts) == longest]
    if len(whole) < len(known):
        missing.append(f"{arm.name}: runs that ended before update {longest:,} are left out")
    run, first = whole[0]
    ends = np.unique(np.linspace(0, longest, min(WINDOWS, longest) + 1).round().astype(int))
    shares = np.stack([_window_shares(found, first.tasks, ends) for _, found in whole])
    planned = _planned(arm, run, first.tasks, longest)
    if isinstance(planned, str):
        missing.append(f"planned shares of {arm.name}: {planned}")
    points = []
    for place, (start, end) in enumerate(itertools.pairwise(ends)):
        for column, task in enumerate(first.tasks):
            seen = shares[:, place, column]
            plan = None if isinstance(planned, str) else float(planned[start:end, column].mean())
            extremes = float(seen.min()), float(seen.max())
            points.append(SharePoint(arm.name, number, task, int(start), int(end), float(seen.mean()), *extremes, plan))
    return points, missing


def _joint_sequence(arm: Arm, run: FoundRun) -> TaskSequence | None:
    # Of runs in folds the first: all draw alike, from training rows that differ in number by a few at most.
    return sequences(arm, run, arm.tasks[0])[0]


def _window_shares(sequence: TaskSequence, tasks: Sequence[str], ends: npt.NDArray[np.int64]) -> Shares:
    """(windows, K), tasks in the order of ``tasks``."""
    columns = [sequence.tasks.index(task) for task in tasks]
    totals = np.add.reduceat(sequence.counts[:, columns], ends[:-1], axis=0).astype(np.float64)
    return np.asarray(totals / totals.sum(axis=1, keepdims=True))


def _planned(arm: Arm, run: FoundRun, tasks: Sequence[str], updates: int) -> Shares | str:
    """The sampler's probabilities (updates, K), or why they are not known.

    With a holdout they are from the most rows that may have been trained on: a row or two from the run's own.
    """
    config = settings_of(run)
    if config is None:
        return "neither the run's config.yaml nor its study's study.yaml is there"
    settings = resolve_stage(config, "joint", None)
    if settings.sampling.kind == "replay":
        return "they are what another run drew"
    if settings.training.rows_per_update is None:
        return "they are of tokens, and what was drawn is counted in examples"
    unknown = [task for task in tasks if task not in registry.names()]
    if unknown:
        return f"{', '.join(unknown)} is not known here"
    rows = _rows(arm, run, config, tasks)
    if rows is None:
        return "the result does not tell the rows that were trained on"
    sizes = sampler_sizes(settings, [registry.get(task) for task in tasks], rows)
    sampler = make_sampler(settings.sampling, sizes)
    return np.stack([sampler.probabilities(step, updates) for step in range(updates)])


def _rows(arm: Arm, run: FoundRun, config: RunConfig, tasks: Sequence[str]) -> dict[str, int] | None:
    holdout = resolve_stage(config, "joint", None).selection.on == "holdout"
    records = arm.record(run).tasks
    found = {task: records[task].train_rows if task in records else None for task in tasks}
    known = {task: training_rows(count, portion=WHOLE, holdout=holdout) for task, count in found.items() if count}
    return known if len(known) == len(found) else None
