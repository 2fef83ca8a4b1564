"""Arms against a baseline: scores with their spread, differences with their tests, and what each arm had cost.

A pure function of what the runs have written.
"""

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mtl.errors import ConfigError
from mtl.records import SplitRecord
from mtl.studies.comparable import Kind, check_comparable
from mtl.studies.comparisons import Comparison, Row, compare_all, values
from mtl.studies.costs import ArmCost, arm_cost
from mtl.studies.example_draws import task_draw
from mtl.studies.notes import is_partial, notes_of
from mtl.studies.scored_arms import Arm, find_arm
from mtl.studies.statistics.delta_m import Improvement, improvement
from mtl.studies.table import Cell, in_suite_order, what_is_scored
from mtl.tasks import registry


@dataclass(frozen=True)
class Primary:
    """The one comparison that was named before the runs: an arm against the baseline, by a task or a suite."""

    arm: str
    score: str


@dataclass(frozen=True)
class ScoreRow:
    """A task or suite: the arms' cells (None: not scored), and which are the best or not distinguishable from it."""

    name: str
    members: tuple[str, ...] | None
    score: str
    partial: bool
    cells: tuple[Cell | None, ...]
    best: tuple[bool, ...]


@dataclass(frozen=True)
class StudyTable:
    """``improvements``, by arm but the baseline, are over the tasks that all arms scored and a mean counts.

    ``secondary`` is the number of tests that Holm's correction is for.
    """

    arms: tuple[Arm, ...]
    baseline: str
    primary: Primary | None
    rows: tuple[ScoreRow, ...]
    comparisons: tuple[Comparison, ...]
    secondary: int
    improvements: dict[str, Improvement]
    costs: dict[str, ArmCost]
    notes: tuple[str, ...]


def study_table(
    arms: Sequence[Arm], baseline: str, *, primary: Primary | None = None, allowed: Collection[Kind] = ()
) -> StudyTable:
    """The table of ``arms``. ConfigError where they are not comparable, or what is named is not there."""
    reference = find_arm(arms, baseline)
    if len(arms) < 2:
        raise ConfigError(f"there is nothing to compare {reference.name} with; name runs of another arm as well")
    differing = check_comparable(arms, reference, allowed)
    tasks = _tasks(arms)
    rows = _rows(arms, tasks)
    if primary is not None:
        primary = replace(primary, arm=find_arm(arms, primary.arm).name)
        _check_primary(primary, reference, rows)
    draws = {task: task_draw(arms, task) for task in tasks}
    named = None if primary is None else (primary.arm, primary.score)
    found = compare_all(arms, reference, rows, draws, named)
    against = [each for each in found if each.baseline == reference.name]
    shared = counted_tasks(arms)
    return StudyTable(
        arms=tuple(arms),
        baseline=reference.name,
        primary=primary,
        rows=tuple(_score_row(arms, row, found) for row in rows),
        comparisons=tuple(against),
        secondary=sum(each.estimate is not None and not each.primary for each in against),
        improvements=_improvements(arms, reference, shared),
        costs={arm.name: arm_cost(arm, shared) for arm in arms},
        notes=(*differing, *_notes(arms)),
    )


def plain_rows(arms: Sequence[Arm]) -> tuple[ScoreRow, ...]:
    """The scores of ``arms``, nothing compared and none of them called the best."""
    rows = [_score_row(arms, row, []) for row in _rows(arms, _tasks(arms))]
    return tuple(replace(row, best=tuple(False for _ in arms)) for row in rows)


def counted_tasks(arms: Sequence[Arm]) -> list[str]:
    """The tasks that all arms scored and that count towards a mean over tasks."""
    return [task for task in _tasks(arms) if _counts(task, arms)]


def _tasks(arms: Sequence[Arm]) -> list[str]:
    tasks = in_suite_order([run.result for arm in arms for run in arm.runs])
    return [task for task in tasks if any(task in arm.tasks for arm in arms)]


def _rows(arms: Sequence[Arm], tasks: Sequence[str]) -> list[Row]:
    """Tasks by suite, each followed by the means that were taken over the same tasks in at least two arms, if any."""
    rows: list[Row] = []
    for suite in dict.fromkeys(task.split("/")[0] for task in tasks):
        rows += [Row(task, None) for task in tasks if task.split("/")[0] == suite]
        sets: dict[tuple[str, ...], set[str]] = {}
        for arm in arms:
            for run in arm.runs:
                record = arm.record(run).suites.get(suite)
                if record is not None and record.score is not None:
                    sets.setdefault(tuple(sorted(record.tasks)), set()).add(arm.name)
        rows += [Row(suite, members) for members, names in sets.items() if len(names) > 1 or len(arms) == 1]
    return rows


def _check_primary(primary: Primary, reference: Arm, rows: Sequence[Row]) -> None:
    if primary.arm == reference.name:
        raise ConfigError(f"the primary comparison is of {primary.arm} with itself, the baseline; name another arm")
    if [row.name for row in rows].count(primary.score) != 1:
        known = ", ".join(dict.fromkeys(row.name for row in rows))
        raise ConfigError(f"the primary comparison is by {primary.score!r}, which is no row of its own; rows: {known}")


def _score_row(arms: Sequence[Arm], row: Row, found: Sequence[Comparison]) -> ScoreRow:
    cells = [Cell(tuple(scores)) if (scores := [value for _, value in values(arm, row)]) else None for arm in arms]
    records = [] if row.members else [arm.record(run).tasks[row.name] for arm in arms for run in arm.scoring(row.name)]
    label = f"mean of {len(row.members)}" if row.members else what_is_scored(row.name, records)
    partial = any(map(is_partial, records))
    return ScoreRow(row.name, row.members, label, partial, tuple(cells), _best(arms, row, cells, found))


def _best(arms: Sequence[Arm], row: Row, cells: Sequence[Cell | None], found: Sequence[Comparison]) -> tuple[bool, ...]:
    """The best arm and all that are not distinguishable from it; none where one of them could not be tested."""
    scored = [(cell.mean, arm.name) for cell, arm in zip(cells, arms, strict=True) if cell is not None]
    none = tuple(False for _ in arms)
    if len(scored) < 2:
        return none
    best = max(scored)[1]
    equal = {best}
    for each in found:
        if each.row is row and best in (each.arm, each.baseline):
            if each.estimate is None:
                return none
            if not each.distinguishable:
                equal |= {each.arm, each.baseline}
    return tuple(arm.name in equal for arm in arms)


def _improvements(arms: Sequence[Arm], reference: Arm, tasks: Sequence[str]) -> dict[str, Improvement]:
    if not tasks:
        return {}
    baseline = _metrics(reference, tasks)
    return {arm.name: improvement(_metrics(arm, tasks), baseline) for arm in arms if arm is not reference}


def _metrics(arm: Arm, tasks: Sequence[str]) -> dict[str, dict[str, float]]:
    """Each task's primary metrics, means over splits and seeds."""
    return {
        task: {
            str(name): statistics.fmean(split.metrics[name] for split in _splits(arm, task))
            for name in registry.get(task).primary
        }
        for task in tasks
    }


def _splits(arm: Arm, task: str) -> list[SplitRecord]:
    return [split for run in arm.scoring(task) for split in arm.record(run).tasks[task].splits.values()]


def _counts(task: str, arms: Sequence[Arm]) -> bool:
    """Whether a task counts towards a mean over tasks: all arms have it; GLUE's WNLI and diagnostic sets do not."""
    if task not in registry.names():
        return False
    spec = registry.get(task)
    if not spec.in_suite_score or spec.evaluate_only or any(task not in arm.tasks for arm in arms):
        return False
    return all(set(spec.primary) <= set(split.metrics) for arm in arms for split in _splits(arm, task))


def _notes(arms: Sequence[Arm]) -> list[str]:
    """What is told of runs, said once where it holds for all arms."""
    told = {
        arm.name: [
            note.removeprefix(f"{arm.stage}: ") for note in notes_of([run.result for run in arm.runs], [arm.stage])
        ]
        for arm in arms
    }
    common = [note for note in told[arms[0].name] if all(note in notes for notes in told.values())]
    others: dict[str, list[str]] = {}
    for name, notes in told.items():
        for note in notes:
            if note not in common:
                others.setdefault(note, []).append(name)
    return common + [f"{', '.join(names)}: {note}" for note, names in others.items()]
