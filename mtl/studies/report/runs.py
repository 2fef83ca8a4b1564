"""The runs of a study on a page: how many are done, what each scored, and those that failed or are missing."""

from collections.abc import Sequence

from mtl.studies.comparisons import Row, values
from mtl.studies.opened import StudyRun
from mtl.studies.report.content import Content
from mtl.studies.report.html import Html, tag
from mtl.studies.report.sections import Section, paragraph, section
from mtl.studies.report.tables import plain_sheet, table
from mtl.studies.run_state import RunState
from mtl.studies.scored_arms import Arm

_WORDS: dict[RunState, str] = {
    "complete": "complete",
    "in use": "running",
    "failed": "failed",
    "interrupted": "interrupted",
    "new": "not begun",
}
_MOST_MESSAGE = 2000


def progress(content: Content) -> Html:
    """How many runs are in which state, also as a bar."""
    states = [run.state for run in content.study.runs]
    counts = {state: states.count(state) for state in _WORDS if state in states}
    words = ", ".join(f"{number} {_WORDS[state]}" for state, number in counts.items())
    done = counts.get("complete", 0)
    bar = tag(
        "div",
        *(tag("span", style=f"flex: {number}", class_=state.replace(" ", "-")) for state, number in counts.items()),
        class_="bar",
        aria_hidden="true",
    )
    told = f"{done} of {len(states)} runs complete" if done < len(states) else f"all {done} runs complete"
    others = "" if done == len(states) else f" ({words})"
    return tag("div", tag("span", told + others), bar, class_="progress")


def runs(content: Content) -> Section:
    """The score of every run by arm and seed, and what became of those that have none."""
    row = content.headline
    parts: list[Html] = []
    if row is not None and content.arms:
        score = row.name if row.members is None else f"{row.name}, mean of {len(row.members)}"
        seeds = content.study.spec.seeds
        cells = [[arm.name, *_scores(arm, Row(row.name, row.members), content, seeds)] for arm in content.arms]
        title = f"{score}, by arm and seed"
        parts.append(paragraph(f"The score of {score}, of each run by itself."))
        parts.append(table(plain_sheet(title, ("arm", *(f"seed {seed}" for seed in seeds)), cells, words=1)))
    unfinished = [run for run in content.study.runs if run.state != "complete"]
    if unfinished:
        parts.append(paragraph("Runs that are not complete:"))
        cells = [[_name(run), _WORDS[run.state], (run.failure or "")[:_MOST_MESSAGE]] for run in unfinished]
        parts.append(table(plain_sheet("Not complete", ("run", "state", "what it said"), cells, words=3), wrap=True))
    return section("runs", "Every run", *parts)


def _scores(arm: Arm, row: Row, content: Content, seeds: Sequence[int]) -> list[str]:
    """A score for each seed, or how its run stands."""
    found = {run.result.seed: score for run, score in values(arm, row)}
    states = {run.seed: run.state for run in content.study.runs if arm.label in run.arms and run.state != "complete"}
    return [f"{found[seed]:.1f}" if seed in found else _WORDS.get(states.get(seed, "new"), "-") for seed in seeds]


def _name(run: StudyRun) -> str:
    others = run.arms[1:]
    return run.title + (f" (also {', '.join(others)})" if others else "")
