"""The runs of an arm and seed that hold out one fold each, taken together: one run, scored on all examples at once."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import reduce

from mtl import metrics
from mtl import tasks as task_registry
from mtl.errors import ConfigError
from mtl.records import CostRecord, ResultRecord, SplitRecord, StageName, StageRecord, TaskRecord, sum_costs
from mtl.stages.suites import suite_records
from mtl.studies.find import FoundRun, learn_tasks
from mtl.studies.saved_predictions import joined_predictions

_Key = tuple[str, int]


def pooled_folds(found: Sequence[FoundRun]) -> list[FoundRun]:
    """The runs, those that hold out a fold as one wherever all folds of an arm and seed are there and complete.

    The scores of tasks in folds are those of the predictions of all folds together; a task with splits of its own is
    scored by the run of fold 0. The cost is the sum of all folds'. DataError where predictions are missing or damaged.
    """
    groups: dict[_Key, list[FoundRun]] = {}
    for run in found:
        if run.result.fold is not None:
            groups.setdefault(_key(run), []).append(run)
    learn_tasks([run for runs in groups.values() for run in runs])
    pooled = {key: _pooled(runs) for key, runs in groups.items() if not _missing(runs)}
    done: dict[_Key | int, FoundRun] = {}
    for number, run in enumerate(found):
        key = _key(run)
        in_folds = run.result.fold is not None and key in pooled
        done.setdefault(key if in_folds else number, pooled[key] if in_folds else run)
    return list(done.values())


def check_pooled(found: Sequence[FoundRun]) -> None:
    """Raise ConfigError where a run of one fold alone is to be compared, which says which folds are missing."""
    alone = [run for run in found if run.result.fold is not None]
    if alone:
        run = alone[0]
        folds = sorted(each.result.fold for each in alone if _key(each) == _key(run) and each.result.fold is not None)
        raise ConfigError(
            f"{run.directory.path} is scored on fold {run.result.fold} of {_number(run.result) or 'several'} alone; "
            f"the folds of an arm and seed are compared together, and of these only {', '.join(map(str, folds))} are "
            "here: let the study finish, or name the others as well"
        )


def _key(run: FoundRun) -> _Key:
    return run.result.arm, run.result.seed


def _number(result: ResultRecord) -> int | None:
    """Into how many folds the run's small tasks were divided; None where it has scored none of them yet."""
    return next((task.kfold for stage in result.stages.values() for task in stage.tasks.values() if task.kfold), None)


def _missing(runs: Sequence[FoundRun]) -> bool:
    numbers = {_number(run.result) for run in runs}
    folds = {run.result.fold for run in runs if run.result.status == "complete"}
    return None in numbers or any(folds != set(range(number or 0)) for number in numbers)


def _pooled(runs: Sequence[FoundRun]) -> FoundRun:
    parts = tuple(sorted(runs, key=lambda run: run.result.fold or 0))
    first = parts[0].result
    stages = [stage for stage in first.stages if all(stage in part.result.stages for part in parts)]
    result = first.model_copy(
        update={
            "fold": None,
            "run_hash": _together(part.result.run_hash for part in parts),
            "partial": any(part.result.partial for part in parts),
            "stages": {stage: _stage(parts, stage) for stage in stages},
        }
    )
    return FoundRun(parts[0].directory, result, parts)


def _stage(parts: Sequence[FoundRun], stage: StageName) -> StageRecord:
    records = [part.result.stages[stage] for part in parts]
    tasks = {
        name: _task(parts, stage, name) if record.kfold else record
        for name, record in records[0].tasks.items()
        if all(name in each.tasks for each in records)
    }
    specs = [task_registry.get(name) for name in tasks]
    return StageRecord(tasks=tasks, suites=suite_records(specs, tasks), cost=reduce(_sum, (r.cost for r in records)))


def _task(parts: Sequence[FoundRun], stage: StageName, name: str) -> TaskRecord:
    spec = task_registry.get(name)
    records = [part.result.stages[stage].tasks[name] for part in parts]
    (split,) = records[0].splits
    saved = joined_predictions(parts, stage, spec, split)
    scores = metrics.score(spec, saved.predictions, saved.labels)
    scored = SplitRecord(
        metrics=scores.metrics,
        rows=len(saved.rows),
        rows_at_hand=_rows_at_hand([record.splits[split] for record in records]),
        rows_sha256=_together(record.splits[split].rows_sha256 for record in records),
        flags=scores.flags,
    )
    rows = [record.train_rows for record in records if record.train_rows is not None]
    return records[0].model_copy(
        update={
            "primary": metrics.primary(spec, {split: scores.metrics}),
            "looks": max(record.looks for record in records),
            "selected_step": max(record.selected_step for record in records),
            "train_rows": sum(rows) // len(rows) if rows else None,
            "splits": {split: scored},
        }
    )


def _rows_at_hand(splits: Sequence[SplitRecord]) -> int | None:
    if all(each.rows_at_hand is None for each in splits):
        return None
    return sum(each.rows if each.rows_at_hand is None else each.rows_at_hand for each in splits)


def _sum(first: CostRecord, second: CostRecord) -> CostRecord:
    """What two folds had spent; what both started from, such as weights from elsewhere, was spent once."""
    inherited = {**first.inherited, **second.inherited}
    for name in first.inherited.keys() & second.inherited.keys():
        one, other = first.inherited[name], second.inherited[name]
        inherited[name] = one if one == other else _sum(one, other)
    return sum_costs(first, second).model_copy(update={"inherited": inherited})


def _together(checksums: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(checksums).encode()).hexdigest()
