"""How many examples of its own a task needs, alone and together with others: the data-fraction curve."""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mtl.errors import ConfigError
from mtl.records import StageName
from mtl.studies.comparable import check_comparable
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.stage_lines import STAGE_LINES
from mtl.studies.scored_arms import Arm
from mtl.studies.statistics.mean import interval_of_mean
from mtl.studies.table import in_suite_order

_ORDER: tuple[StageName, ...] = ("single", "joint", "finetune")


@dataclass(frozen=True)
class FractionPoint:
    """The mean score of ``target``, ``train_rows`` of it trained on, and its 95% interval over seeds, uncorrected.

    ``single_rows`` is how many examples the target alone needs for the same mean score, on the straight lines (over the
    logarithm of rows) between the points of ``single``; None where that was not reached, and for ``single`` itself.
    """

    target: str
    line: str
    stage: StageName
    arm: str
    train_rows: int
    mean: float
    low: float | None
    high: float | None
    scores: tuple[float, ...]
    single_rows: float | None = None


def fraction(source: Source) -> Drawing:
    """The curves of every task that some arms trained on fewer of its examples than others."""
    points = fraction_points(source.arms)
    known = [arm for arm in source.arms if any(point.arm == arm.name for point in points)]
    for target in dict.fromkeys(point.target for point in points):
        scoring = [arm for arm in known if target in arm.tasks]
        # What is varied here is the data; scores have to be of the same rows all the same.
        check_comparable(scoring, scoring[0], ("data", *source.allowed))
    caption = (
        "Mean score against the number of the task's own training examples, smaller sets being parts of larger ones "
        "and all other tasks complete unless the arms say otherwise. Ribbons: 95% intervals of the mean over seeds, "
        "uncorrected. Dots: seeds. Arrow: from a mean score of the joint arm to as many examples as the task alone "
        "needs for it, on straight lines between means; it has no interval."
    )
    missing = [
        f"{target}: alone it reaches no score of a joint arm with more examples, so there is no arrow"
        for target in dict.fromkeys(point.target for point in points)
        if saved([point for point in points if point.target == target]) is None
    ]
    missing += [f"{point.arm} has one run, so no interval" for point in points if len(point.scores) < 2]
    return Drawing(points, caption, tuple(dict.fromkeys(missing)))


def fraction_points(arms: Sequence[Arm]) -> list[FractionPoint]:
    """The points by task, line and rows. ConfigError where no task was trained on different numbers of examples."""
    found = []
    for target in in_suite_order([run.result for arm in arms for run in arm.runs]):
        if len({arm.record(run).tasks[target].train_rows for arm in arms for run in arm.scoring(target)}) < 2:
            continue
        lines = _lines(arms, target)
        single = [line for line in lines.values() if line[0].stage == "single"]
        for line in lines.values():
            others = () if line[0].stage == "single" or len(single) != 1 else single[0]
            found += [replace(point, single_rows=_rows_for(point.mean, others)) for point in line]
    if not found:
        raise ConfigError(
            "a curve over data fractions needs arms that train one task on different numbers of its examples, as "
            "data.fraction or data.max_train_rows give; all arms here train on the same"
        )
    return found


def saved(points: Sequence[FractionPoint]) -> FractionPoint | None:
    """Of one task, the joint point with the most examples that the task alone needs more examples to equal."""
    better = [point for point in points if point.single_rows is not None and point.single_rows > point.train_rows]
    return max(better, key=lambda point: (point.train_rows, point.mean), default=None)


def _lines(arms: Sequence[Arm], target: str) -> dict[str, list[FractionPoint]]:
    """By its name, the points of each line by rows: arms of one stage whose joint training had the same tasks."""
    groups: dict[tuple[StageName, frozenset[str]], list[Arm]] = {}
    for arm in sorted(arms, key=lambda arm: _ORDER.index(arm.stage)):
        if target in arm.tasks:
            others = frozenset() if arm.stage == "single" else frozenset(arm.tasks) - {target}
            groups.setdefault((arm.stage, others), []).append(arm)
    lines = {}
    for (stage, others), members in groups.items():
        sets = [each for other_stage, each in groups if other_stage == stage]
        # What all sets have tells none of them apart.
        own = sorted(others - frozenset.intersection(*sets)) if len(sets) > 1 else []
        line = STAGE_LINES[stage].name + (f" with {', '.join(own)}" if own else "")
        lines[line] = _points(members, target, line)
    return lines


def _points(arms: Sequence[Arm], target: str, line: str) -> list[FractionPoint]:
    points: dict[int, FractionPoint] = {}
    for arm in arms:
        records = [arm.record(run).tasks[target] for run in arm.scoring(target)]
        rows = {record.train_rows for record in records}
        if len(rows) != 1 or None in rows:
            raise ConfigError(f"the runs of {arm.name} do not tell on how many examples of {target} they trained")
        (count,) = rows
        assert count is not None
        if count in points:
            raise ConfigError(
                f"{points[count].arm} and {arm.name} both train {target} on {count:,} examples in the same stage, with "
                "the same tasks: name the runs of one of them"
            )
        scores = tuple(record.primary for record in records)
        low, high = interval_of_mean(scores)
        points[count] = FractionPoint(
            target, line, arm.stage, arm.name, count, statistics.fmean(scores), low, high, scores
        )
    return [points[count] for count in sorted(points)]


def _rows_for(score: float, line: Sequence[FractionPoint]) -> float | None:
    """The rows at which the line first rises to ``score``; None where it starts above it or never does."""
    for before, after in itertools.pairwise(line):
        if before.mean < score <= after.mean:
            part = (score - before.mean) / (after.mean - before.mean)
            return math.exp(math.log(before.train_rows) * (1 - part) + math.log(after.train_rows) * part)
    return None
