"""The answer to the study's question, as far as its primary comparison gives one, in plain words."""

from dataclasses import dataclass
from typing import Literal

from mtl.studies.comparisons import Comparison
from mtl.studies.report.content import Content
from mtl.studies.study_layout import detectable, p_value, points
from mtl.studies.study_table import StudyTable

Verdict = Literal["better", "worse", "not distinguishable", "not tested", "not yet", "exploratory"]


@dataclass(frozen=True)
class Answer:
    """``sentence`` says all that matters; ``facts`` are its numbers by name."""

    verdict: Verdict
    sentence: str
    facts: tuple[tuple[str, str], ...] = ()


def answer(content: Content) -> Answer:
    """What the primary comparison found."""
    primary = content.study.spec.primary
    if primary is None:
        return Answer(
            "exploratory",
            "No primary comparison was named before the runs. Everything on this page is exploratory: it can suggest a "
            "question, not answer one.",
        )
    table = content.table
    found = None if table is None else next((each for each in table.comparisons if each.primary), None)
    if table is None or found is None:
        why = content.no_primary or content.no_table or f"no run of {primary.arm} has the score {primary.score}"
        return Answer(
            "not yet",
            f"The primary comparison, {primary.arm} against {content.study.spec.baseline} by {primary.score}, cannot "
            f"be made yet: {why}.",
        )
    return _found(table, found)


def _found(table: StudyTable, found: Comparison) -> Answer:
    score = found.row.name if found.row.members is None else f"{found.row.name}, the mean of {len(found.row.members)}"
    size = f"{abs(found.difference):.1f} points"
    seeds = _seeds(table, found)
    if found.estimate is None:
        return Answer(
            "not tested",
            f"{found.arm} scored {size} {_more(found)} than {found.baseline} on {score} ({seeds}), but that was not "
            f"tested: {found.untested}.",
            (("difference", _minus(points(found.difference))), ("seeds", seeds)),
        )
    low, high = (_minus(points(end)) for end in (found.estimate.low, found.estimate.high))
    p = p_value(found.estimate.p_value)
    p = f"p {p[0]} {p[1:]}" if p.startswith("<") else f"p = {p}"
    test = f"95% interval {low} to {high}; {found.pairing} t-test, {p}; {seeds}"
    facts = [
        ("difference", f"{_minus(points(found.difference))} points"),
        ("95% interval", f"{low} to {high}"),
        ("test", f"{found.pairing} t, {p}"),
        ("seeds", seeds),
    ]
    if found.distinguishable:
        sentence = f"{found.arm} scores {size} {_more(found)} than {found.baseline} on {score} ({test})."
        return Answer("better" if found.difference > 0 else "worse", sentence, tuple(facts))
    sentence = (
        f"{found.arm} is not distinguishable from {found.baseline} on {score}: the difference is "
        f"{_minus(points(found.difference))} points ({test})."
    )
    if found.detectable is not None:
        limit = detectable(found.detectable)
        sentence += (
            f" Only a true difference of {limit} points or more would have been found in 80% of such studies, so this "
            "does not show that they are equal."
        )
        facts.append(("detectable", f"{limit} points"))
    return Answer("not distinguishable", sentence, tuple(facts))


def _more(found: Comparison) -> str:
    return "more" if found.difference > 0 else "less"


def _minus(number: str) -> str:
    """With a minus sign instead of a hyphen."""
    return number.replace("-", "−")


def _seeds(table: StudyTable, found: Comparison) -> str:
    row = next(row for row in table.rows if (row.name, row.members) == (found.row.name, found.row.members))
    cells = {arm.name: cell for arm, cell in zip(table.arms, row.cells, strict=True)}
    numbers = [len(cell.values) for cell in (cells[found.arm], cells[found.baseline]) if cell is not None]
    if len(set(numbers)) == 1:
        return f"{numbers[0]} seed{'' if numbers[0] == 1 else 's'} each"
    return f"{numbers[0]} and {numbers[1]} seeds"
