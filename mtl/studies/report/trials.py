"""Where a study's arms are trials of one list of settings: what the best of fewer of them would have scored."""

import statistics

from mtl.studies.arms import arms_of
from mtl.studies.comparisons import Row, values
from mtl.studies.grid_edges import at_edges
from mtl.studies.report.content import Content
from mtl.studies.report.html import Html
from mtl.studies.report.sections import Section, paragraph, section
from mtl.studies.report.tables import plain_sheet, table
from mtl.studies.scored_arms import Arm
from mtl.studies.spec import StudySpec
from mtl.studies.statistics.best_of_trials import expected_best

_FEWEST = 2
_TITLE = "Best of fewer trials"


def trials(content: Content) -> Section:
    """The expected best of 1, 2, ... K trials, for each stage; only of a study whose arms are a grid."""
    row, grid = content.headline, content.study.spec.grid
    if grid is None or row is None:
        return section("trials", _TITLE)
    parts: list[Html] = []
    for stage in dict.fromkeys(arm.stage for arm in content.arms):
        arms = [arm for arm in content.arms if arm.stage == stage]
        means = {
            arm.name: statistics.fmean(score for _, score in found)
            for arm in arms
            if (found := values(arm, Row(row.name, row.members)))
        }
        if len(means) < _FEWEST:
            continue
        best = max(means, key=lambda name: means[name])
        expected = expected_best(list(means.values()))
        header = ("trials", *(str(number) for number in range(1, len(expected) + 1)))
        title = f"Expected best of k trials, {row.name}, {stage}"
        cells = [["score", *(f"{value:.1f}" for value in expected)]]
        parts.append(table(plain_sheet(title, header, cells, words=1)))
        edges = at_edges(grid, _combination(content.study.spec, next(arm for arm in arms if arm.name == best)))
        parts.append(paragraph("; ".join([f"Best of {len(means)}: {best}, {means[best]:.1f}", *edges]) + "."))
    if not parts:
        return section("trials", _TITLE)
    lead = (
        "A trial is an arm, its score the mean over seeds. The best of several is chosen on the rows that it is scored "
        "on, so it is too high, the more the more trials there were (Dodge et al. 2019, Show your work)."
    )
    return section("trials", _TITLE, paragraph(lead), *parts)


def _combination(study: StudySpec, arm: Arm) -> int:
    """Which of the grid's combinations the arm is, from 0; of several that share their runs, the first."""
    # Runs of one combination that are of two arms, since their data changed between them, are called after its folder
    # and a hash in brackets, which no name of the study has.
    return list(arms_of(study, ())).index(arm.label.partition(" (")[0])
