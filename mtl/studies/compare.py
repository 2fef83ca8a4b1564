"""Two runs side by side: what was set otherwise, what was scored otherwise, and on which examples they part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mtl import tasks as task_registry
from mtl.config.hashes import difference
from mtl.config.load import load_config
from mtl.config.locations import data_root
from mtl.config.replayed import changed_runs
from mtl.config.run import RunConfig, Stage
from mtl.errors import ConfigError, DataError
from mtl.records import ResultRecord, SplitRecord, StageRecord, read_result
from mtl.rundir import RunDirectory, StageDirectory
from mtl.studies.flips import Flips, Texts, find_flips, read_texts
from mtl.studies.paired_tests import Pair, TestResult, holm, paired_test
from mtl.studies.saved_predictions import read_predictions
from mtl.tasks.spec import TaskSpec

# What is compared where nobody says which stage.
_FIRST_CHOICE: tuple[Stage, ...] = ("joint", "finetune", "single")


@dataclass(frozen=True)
class TaskComparison:
    """One task: primary scores of both runs, their difference in points, the test, and the examples that flipped.

    ``p_holm`` is corrected for the number of tasks in the comparison. ``flips`` are by split; ``missing_texts`` says
    why examples have no text.
    """

    task: str
    splits: tuple[str, ...]
    rows: int
    score: tuple[str, ...]
    first: float
    second: float
    difference: float
    test: TestResult
    p_holm: float
    flips: dict[str, Flips]
    missing_texts: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Two runs; differences are the second's score less the first's. ``only_first`` are tasks the second did not score.

    ``suites`` has the mean scores of suites in which both scored the same tasks, first and second.
    """

    runs: tuple[str, str]
    stages: tuple[Stage, Stage]
    seeds: tuple[int, int]
    statuses: tuple[str, str]
    partial: bool
    config_difference: tuple[str, ...]
    tasks: tuple[TaskComparison, ...]
    suites: dict[str, tuple[float, float]]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


@dataclass(frozen=True)
class _Side:
    """One of the runs, and the stage of it that is compared."""

    run: RunDirectory
    config: RunConfig
    result: ResultRecord
    stage: Stage
    record: StageRecord


def compare_runs(
    first: Path,
    second: Path,
    *,
    stage: Stage | None = None,
    second_stage: Stage | None = None,
    tasks: Sequence[str] = (),
    split: str | None = None,
    flips: int = 5,
) -> Comparison:
    """Compare a stage of two runs task by task: by default the joint one, else another that both have.

    ``second_stage`` is the second run's, where another than ``stage``. ``tasks`` are names or suites, by default all
    that both scored; ``split`` one split instead of all that scores are means of; ``flips`` the most examples shown of
    each split, each way. ConfigError for what neither has, DataError where runs were scored on different rows or lack
    predictions.
    """
    sides = _sides(first, second, stage, second_stage)
    compared = [_compare_task(sides, task_registry.get(name), split, flips) for name in _chosen(sides, tasks)]
    corrected = holm([task.test.p_value for task in compared])
    one, other = sides
    return Comparison(
        runs=(str(first), str(second)),
        stages=(one.stage, other.stage),
        seeds=(one.result.seed, other.result.seed),
        statuses=(one.result.status, other.result.status),
        partial=one.result.partial or other.result.partial,
        config_difference=(*difference(one.config, other.config), *_runs_read(one, other)),
        tasks=tuple(replace(task, p_holm=p_value) for task, p_value in zip(compared, corrected, strict=True)),
        suites={} if tasks or split else _suites(one.record, other.record),
        only_first=tuple(name for name in one.record.tasks if name not in other.record.tasks),
        only_second=tuple(name for name in other.record.tasks if name not in one.record.tasks),
    )


def _runs_read(one: _Side, other: _Side) -> list[str]:
    """Where they start from other weights, or replay other draws: their places tell, if their arms are not the same."""
    return [] if one.result.arm_hash == other.result.arm_hash else changed_runs(one.config, other.config)


def _sides(first: Path, second: Path, stage: Stage | None, second_stage: Stage | None) -> tuple[_Side, _Side]:
    opened = [_open(path) for path in (first, second)]
    chosen = stage or _common_stage([result for _, _, result in opened])
    sides = [
        _Side(run, config, result, wanted, _stage_record(run, result, wanted))
        for (run, config, result), wanted in zip(opened, (chosen, second_stage or chosen), strict=True)
    ]
    return sides[0], sides[1]


def _common_stage(results: Sequence[ResultRecord]) -> Stage:
    for stage in _FIRST_CHOICE:
        if all(stage in result.stages for result in results):
            return stage
    raise ConfigError(
        f"the runs have no stage in common: {' and '.join(_stages(result) for result in results)}; "
        "name one of each with --stage and --second-stage"
    )


def _open(path: Path) -> tuple[RunDirectory, RunConfig, ResultRecord]:
    run = RunDirectory(path)
    if not run.config.is_file():
        raise DataError(f"{path} is no run directory: it has no config.yaml; name what a run was given as out=")
    return run, load_config(run.config), read_result(run.result)


def _stage_record(run: RunDirectory, result: ResultRecord, stage: Stage) -> StageRecord:
    if stage not in result.stages:
        raise ConfigError(f"{run.path} has no scores of the stage {stage}; it has {_stages(result)}")
    return result.stages[stage]


def _stages(result: ResultRecord) -> str:
    return ", ".join(result.stages) or "none yet"


def _chosen(sides: tuple[_Side, _Side], tasks: Sequence[str]) -> list[str]:
    """Names of the tasks to compare, in the first run's order."""
    # What a config names may have to be made known first, such as tasks that come in files.
    for side in sides:
        task_registry.expand(side.config.tasks)
    one, other = (side.record.tasks for side in sides)
    common = [name for name in one if name in other]
    if not tasks:
        if not common:
            raise ConfigError(f"the runs have no task in common: {', '.join(one)} and {', '.join(other)}")
        return common
    wanted = task_registry.expand(tasks)
    strangers = [name for name in wanted if name not in common]
    if strangers:
        raise ConfigError(f"not scored by both runs: {', '.join(strangers)}; common are {', '.join(common) or 'none'}")
    return list(wanted)


def _compare_task(sides: tuple[_Side, _Side], spec: TaskSpec, split: str | None, limit: int) -> TaskComparison:
    splits = _splits(sides, spec, split)
    pairs, flips, missing = [], {}, []
    for name in splits:
        pair, rows = _pair(sides, spec, name)
        texts = _texts(sides[0], spec, name) if limit else Texts(())
        missing += [texts.missing] if texts.missing else []
        pairs.append(pair)
        flips[name] = find_flips(spec, name, pair, rows, texts, limit)
    first, second = (
        float(np.mean([scored.metrics[metric] for scored in _scored(side, spec, splits) for metric in spec.primary]))
        for side in sides
    )
    test = paired_test(spec, pairs)
    return TaskComparison(
        task=spec.name,
        splits=splits,
        rows=sum(len(pair.labels) for pair in pairs),
        score=spec.primary,
        first=first,
        second=second,
        difference=second - first,
        test=test,
        p_holm=test.p_value,
        flips=flips,
        missing_texts=tuple(missing),
    )


def _texts(side: _Side, spec: TaskSpec, split: str) -> Texts:
    record = side.record.tasks[spec.name]
    if record.kfold is not None:
        return Texts((), f"{spec.name} {split}: a fold of train and dev, whose texts are not looked up")
    return read_texts(spec, split, data_root(side.config), record.splits[split].rows_sha256)


def _splits(sides: tuple[_Side, _Side], spec: TaskSpec, split: str | None) -> tuple[str, ...]:
    """The splits to compare, which both runs scored."""
    wanted = spec.dev_splits if split is None else (split,)
    for side in sides:
        scored = side.record.tasks[spec.name].splits
        missing = [name for name in wanted if name not in scored]
        if missing:
            raise ConfigError(
                f"{side.run.path} has no scores of {spec.name} on {', '.join(missing)}; it has {', '.join(scored)}"
            )
    return wanted


def _scored(side: _Side, spec: TaskSpec, splits: Sequence[str]) -> list[SplitRecord]:
    return [side.record.tasks[spec.name].splits[name] for name in splits]


def _pair(sides: tuple[_Side, _Side], spec: TaskSpec, split: str) -> tuple[Pair, npt.NDArray[np.int64]]:
    """The predictions of both runs for the same examples, and these examples' places in the split's file."""
    records = [side.record.tasks[spec.name].splits[split] for side in sides]
    if records[0].rows_sha256 != records[1].rows_sha256:
        hashes = " and ".join(record.rows_sha256[:12] for record in records)
        raise DataError(
            f"{spec.name} {split}: the runs were scored on different rows (sha256 {hashes}), so they cannot be paired; "
            "score both on the same file, or leave the task out with --task"
        )
    one, other = (
        read_predictions(_directory(side, spec).predictions(spec.name, split), spec, record)
        for side, record in zip(sides, records, strict=True)
    )
    if not (np.array_equal(one.rows, other.rows) and np.array_equal(one.labels, other.labels)):
        raise DataError(f"{spec.name} {split}: the saved predictions are not of the same examples; run both again")
    return Pair(one.predictions, other.predictions, one.labels), one.rows


def _directory(side: _Side, spec: TaskSpec) -> StageDirectory:
    # A task that is only evaluated has no training of its own: it lies with the task whose head scored it.
    return side.run.stage(side.stage, None if side.stage == "joint" else spec.scored_by or spec.name)


def _suites(one: StageRecord, other: StageRecord) -> dict[str, tuple[float, float]]:
    """Mean scores of the suites of which both runs scored the same tasks."""
    found = {}
    for name, suite in one.suites.items():
        again = other.suites.get(name)
        if again is None or again.tasks != suite.tasks or suite.score is None or again.score is None:
            continue
        found[name] = (suite.score, again.score)
    return found
