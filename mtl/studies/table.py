"""Scores of runs side by side: a pure function of their results.

Runs that differ in their seed only (one arm) become one block: a row for each task and suite, a column for each stage.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mtl.records import ResultRecord, StageName, StageRecord, SuiteRecord, TaskRecord
from mtl.studies.notes import is_partial, notes_of
from mtl.studies.one_arm import arms_of_results
from mtl.tasks.registry import get, names

STAGES: tuple[StageName, ...] = ("single", "joint", "finetune")


@dataclass(frozen=True)
class Cell:
    """The scores of one row in one stage, one a run, in the order of the seeds; never empty."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation (n - 1); None for a single run, which tells nothing of it."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class TableRow:
    """One task or suite: its cells by stage (None: not scored there). ``partial``: on other data than official."""

    name: str
    score: str
    cells: tuple[Cell | None, ...]
    partial: bool = False


@dataclass(frozen=True)
class ArmTable:
    """One arm: its runs' seeds, the stages that any of them has, tasks then suites, and what a reader must know."""

    arm_hash: str
    seeds: tuple[int, ...]
    stages: tuple[StageName, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


def arm_tables(results: Sequence[ResultRecord]) -> list[ArmTable]:
    """A table for each arm, in the order in which the arms first come; one for each fold of its own.

    Folds that were taken together (see mtl.studies.folds) are none any more.
    """
    arms: dict[tuple[str, int | None], list[ResultRecord]] = {}
    for arm, result in zip(arms_of_results(results), results, strict=True):
        arms.setdefault((arm, result.fold), []).append(result)
    return [_arm_table(arm, sorted(runs, key=lambda run: run.seed)) for (arm, _), runs in arms.items()]


def _arm_table(arm: str, runs: Sequence[ResultRecord]) -> ArmTable:
    stages = tuple(stage for stage in STAGES if any(stage in run.stages for run in runs))
    tasks = in_suite_order(runs)
    rows: list[TableRow] = []
    for suite in dict.fromkeys(task.split("/")[0] for task in tasks):
        rows += [_task_row(task, stages, runs) for task in tasks if task.split("/")[0] == suite]
        rows += _suite_rows(suite, stages, runs)
    seeds = tuple(run.seed for run in runs)
    return ArmTable(arm, seeds, stages, tuple(rows), notes_of(runs, stages))


def in_suite_order(runs: Sequence[ResultRecord]) -> list[str]:
    """Every task of the runs: known ones in the order of their suites, others after them as they come."""
    present = dict.fromkeys(task for run in runs for stage in run.stages.values() for task in stage.tasks)
    known = names()
    return [task for task in known if task in present] + [task for task in present if task not in known]


def _task_row(task: str, stages: Sequence[StageName], runs: Sequence[ResultRecord]) -> TableRow:
    found = [[each.tasks[task] for each in _records(stage, runs) if task in each.tasks] for stage in stages]
    cells = tuple(_cell([record.primary for record in records]) for records in found)
    everything = [record for records in found for record in records]
    return TableRow(task, what_is_scored(task, everything), cells, any(map(is_partial, everything)))


def what_is_scored(task: str, records: Sequence[TaskRecord]) -> str:
    """The metrics, and the splits where there are several, that the primary score is the mean of; the folds if any."""
    folds = {record.kfold for record in records if record.kfold is not None}
    return ", ".join([_metrics_of(task), *(f"{number}-fold" for number in sorted(folds))])


def _metrics_of(task: str) -> str:
    if task not in names():
        return "primary"
    spec = get(task)
    metrics = spec.primary[0] if len(spec.primary) == 1 else f"mean of {', '.join(spec.primary)}"
    return metrics if len(spec.dev_splits) == 1 else f"{metrics} over {', '.join(spec.dev_splits)}"


def _suite_rows(suite: str, stages: Sequence[StageName], runs: Sequence[ResultRecord]) -> list[TableRow]:
    """A row for each set of tasks that a mean was taken over: means over different tasks never share a row."""
    sets: dict[tuple[str, ...], None] = {}
    for stage in stages:
        for record in _suites(suite, stage, runs):
            sets.setdefault(tuple(sorted(record.tasks)))
    rows = []
    for tasks in sets:
        chosen = [
            [record for record in _suites(suite, stage, runs) if tuple(sorted(record.tasks)) == tasks]
            for stage in stages
        ]
        label = f"mean of {len(tasks)}" if len(sets) == 1 else f"mean of {', '.join(tasks)}"
        plain = [[record.score for record in records if record.score is not None] for records in chosen]
        if any(plain):
            rows.append(TableRow(suite, label, tuple(map(_cell, plain))))
        whole = [[each.score_with_wnli for each in records if each.score_with_wnli is not None] for records in chosen]
        if any(whole):
            rows.append(TableRow(suite, f"{label} and WNLI", tuple(map(_cell, whole))))
    return rows


def _records(stage: StageName, runs: Sequence[ResultRecord]) -> list[StageRecord]:
    return [run.stages[stage] for run in runs if stage in run.stages]


def _suites(suite: str, stage: StageName, runs: Sequence[ResultRecord]) -> list[SuiteRecord]:
    return [record.suites[suite] for record in _records(stage, runs) if suite in record.suites]


def _cell(values: Sequence[float]) -> Cell | None:
    return Cell(tuple(values)) if values else None
