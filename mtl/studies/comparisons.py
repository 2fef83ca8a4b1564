"""Every comparison of a table: its difference, its test, and what several tests at once leave of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mtl.studies.example_draws import TaskDraw
from mtl.studies.find import FoundRun
from mtl.studies.paired_tests import holm
from mtl.studies.pairing import pairing_of
from mtl.studies.scored_arms import Arm
from mtl.studies.statistics.detectable import minimum_detectable_difference
from mtl.studies.statistics.difference import LEVEL, ExampleDraw, difference
from mtl.studies.statistics.seeds import Pairing


@dataclass(frozen=True)
class Row:
    """A task, or with ``members`` a suite: the mean over these tasks."""

    name: str
    members: tuple[str, ...] | None

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the score is made of."""
        return self.members or (self.name,)


@dataclass(frozen=True)
class TestedDifference:
    """Points, with the ends of the uncorrected 95% interval."""

    __test__ = False  # Its name is no sign to pytest.

    standard_error: float
    degrees: float
    p_value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """An arm against another, by one score; ``difference`` is the arm's mean less the baseline's.

    ``estimate`` is None where there is no test, for the reason ``untested``. ``p_adjusted`` is by Holm over all other
    tests of the table, of the primary comparison the plain p-value; ``detectable`` is the smallest difference that the
    test would find in 80% of studies, at the level of Holm's first step.
    """

    row: Row
    arm: str
    baseline: str
    difference: float
    pairing: Pairing
    estimate: TestedDifference | None
    untested: str | None
    primary: bool = False
    p_adjusted: float | None = None
    detectable: float | None = None

    @property
    def distinguishable(self) -> bool:
        """Whether the test says that the arms differ."""
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


def compare_all(
    arms: Sequence[Arm],
    reference: Arm,
    rows: Sequence[Row],
    draws: Mapping[str, TaskDraw],
    primary: tuple[str, str] | None,
) -> list[Comparison]:
    """Each arm against ``reference`` by each row that both have, then the other arms among themselves.

    ``primary`` (arm, row) is tested alone. Holm's correction is over all other comparisons with the reference; those
    among the other arms, which only say what is best, are a family of their own.
    """
    against = [(reference, arm) for arm in arms if arm is not reference]
    among = list(combinations([arm for arm in arms if arm is not reference], 2))
    found = []
    for pairs in (against, among):
        family = [
            each for row in rows for first, second in pairs if (each := _compare(first, second, row, draws)) is not None
        ]
        family = [replace(each, primary=pairs is against and (each.arm, each.row.name) == primary) for each in family]
        found += _corrected(family)
    return found


def compare_pairs(pairs: Sequence[tuple[Arm, Arm, Row]], draws: Mapping[str, TaskDraw]) -> list[Comparison]:
    """Of each (first arm, second arm, row) the second against the first, Holm's correction over all of them.

    Both arms have the row's score.
    """
    found = [_compare(first, second, row, draws) for first, second, row in pairs]
    return _corrected([each for each in found if each is not None])


def values(arm: Arm, row: Row) -> list[tuple[FoundRun, float]]:
    """The runs of the arm that have the row's score, and what they scored."""
    if row.members is None:
        return [(run, arm.record(run).tasks[row.name].primary) for run in arm.scoring(row.name)]
    records = [(run, arm.record(run).suites.get(row.name)) for run in arm.runs]
    return [
        (run, record.score)
        for run, record in records
        if record is not None and record.score is not None and tuple(sorted(record.tasks)) == row.members
    ]


def _compare(first: Arm, second: Arm, row: Row, draws: Mapping[str, TaskDraw]) -> Comparison | None:
    """``second`` against ``first``; None where either has no such score."""
    ones, others = values(first, row), values(second, row)
    if not ones or not others:
        return None
    before, after = (np.array([value for _, value in scores]) for scores in (ones, others))
    pairing = pairing_of(first, second, row.tasks)
    if len(ones) != len(others):
        pairing = "Welch"
    found = Comparison(row, second.name, first.name, float(after.mean() - before.mean()), pairing, None, None)
    for arm, scores in ((first, ones), (second, others)):
        if len(scores) < 2:
            return replace(found, untested=f"{arm.name} has one run: no variance over seeds")
    runs = [(arm.name, run.result.seed) for arm, scores in ((first, ones), (second, others)) for run, _ in scores]
    parts = [draws[task].of(runs) for task in row.tasks]
    for part in parts:
        if isinstance(part, str):
            return replace(found, untested=part)
    of_tasks = [
        ExampleDraw(part.covariance / len(parts) ** 2, part.examples) for part in parts if isinstance(part, ExampleDraw)
    ]
    tested = difference(before, after, of_tasks, pairing)
    if np.isnan(tested.p_value):
        return replace(found, untested="neither seeds nor examples vary")
    numbers = (tested.standard_error, tested.degrees, tested.p_value, tested.low, tested.high)
    return replace(found, estimate=TestedDifference(*map(float, numbers)))


def _corrected(family: Sequence[Comparison]) -> list[Comparison]:
    secondary = [each for each in family if each.estimate is not None and not each.primary]
    adjusted = holm([each.estimate.p_value for each in secondary if each.estimate is not None])
    by_place = {id(each): p_value for each, p_value in zip(secondary, adjusted, strict=True)}
    done = []
    for each in family:
        if each.estimate is None:
            done.append(each)
            continue
        level = LEVEL if each.primary else LEVEL / len(secondary)
        error, degrees = np.array(each.estimate.standard_error), np.array(each.estimate.degrees)
        done.append(
            replace(
                each,
                p_adjusted=each.estimate.p_value if each.primary else by_place[id(each)],
                detectable=float(minimum_detectable_difference(error, degrees, level)),
            )
        )
    return done
