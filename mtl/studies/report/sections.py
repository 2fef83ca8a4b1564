"""The sections of a page, each from what was gathered; an empty one is left out."""

from collections.abc import Sequence
from dataclasses import dataclass

from mtl.config.hashes import difference
from mtl.config.replayed import changed_runs
from mtl.config.run import RunConfig
from mtl.studies.costs import arm_cost
from mtl.studies.report.caveats import Caveat
from mtl.studies.report.content import Content
from mtl.studies.report.html import Html, joined, tag
from mtl.studies.report.machines import machine_rows
from mtl.studies.report.tables import plain_sheet, table
from mtl.studies.score_grid import GridRow, ScoreGrid, score_sheet
from mtl.studies.spec import study_text
from mtl.studies.study_layout import costs_sheet, differences_sheet, notes_of_table
from mtl.studies.study_table import counted_tasks
from mtl.studies.table_layout import TableLayout

_PLAIN = TableLayout()


@dataclass(frozen=True)
class Section:
    """A part of the page that can be linked to; with no content it is left out."""

    name: str
    title: str
    content: tuple[Html, ...]

    @property
    def html(self) -> Html:
        """The section under its head."""
        return tag("section", tag("h2", self.title), *self.content, id=self.name)


def section(name: str, title: str, *content: Html) -> Section:
    """A section of what there is of ``content``."""
    return Section(name, title, tuple(part for part in content if part))


def paragraph(text: str, class_: str | None = None) -> Html:
    """Running text."""
    return tag("p", text, class_=class_)


def listed(lines: Sequence[str], class_: str | None = None) -> Html:
    """Lines as a list; nothing where there are none."""
    return tag("ul", *(tag("li", line) for line in lines), class_=class_) if lines else Html("")


def caveats_box(found: Sequence[Caveat]) -> Html:
    """What limits the numbers, before any of them is seen."""
    if not found:
        return Html("")
    items = [tag("div", tag("h3", caveat.title), listed(caveat.lines)) for caveat in found]
    return tag("section", tag("h2", "Read this first"), *items, id="caveats", class_="caveats")


def scores(content: Content) -> Section:
    """The table of scores, tested or not."""
    if not content.arms:
        return section("scores", "Scores", paragraph("No run has a result yet."))
    rows = tuple(GridRow(row.name, row.score, row.partial, row.cells, row.best) for row in content.rows)
    grid = ScoreGrid(tuple(arm.name for arm in content.arms), tuple(len(arm.runs) for arm in content.arms), rows)
    told = "Mean ± sample standard deviation over seeds."
    if content.table is not None:
        told += " Bold: the best, and what is not distinguishable from it."
    if any(row.partial for row in content.rows):
        told += " * other rows than the official release's, a part of them, or shuffled labels."
    return section("scores", "Scores", paragraph(told), table(score_sheet("Scores", grid, _PLAIN, count=True)))


def differences(content: Content) -> Section:
    """All comparisons with their tests, or why there are none."""
    if content.table is None:
        return section("differences", "Differences", paragraph(f"There are none to show: {content.no_table}."))
    lead = "The primary comparison is tested alone; p-values of all others are corrected by Holm, intervals are not."
    return section("differences", "Differences", paragraph(lead), table(differences_sheet(content.table, _PLAIN)))


def costs(content: Content) -> Section:
    """What each arm had cost, three ways, and with a table what it gained over all tasks."""
    if not content.arms:
        return section("costs", "Cost")
    if content.table is not None:
        sheet = costs_sheet(content.table, _PLAIN)
    else:
        tasks = counted_tasks(content.arms)
        found = [(arm.name, arm_cost(arm, tasks)) for arm in content.arms]
        cells = [
            (
                name,
                f"{cost.tokens:,.0f}",
                "-" if cost.target_examples is None else f"{cost.target_examples:,.0f}",
                f"{cost.flops:.2e}",
            )
            for name, cost in found
        ]
        sheet = plain_sheet("Cost", ("arm", "tokens", "target examples", "FLOPs"), cells, words=1)
    lead = "Cost is told three ways, none of which is time: tokens, examples of the tasks compared, operations."
    return section("costs", "Over all tasks, and cost", paragraph(lead), table(sheet))


def settings(content: Content) -> Section:
    """Where the arms' settings differ, and the study's file."""
    configs = content.configs
    reference = content.study.spec.baseline or next(iter(configs))
    rows = []
    for arm, config in configs.items():
        changes = _changes(content, configs[reference], config)
        lines = [tag("code", change.replace(" -> ", " → ")) for change in changes]
        label = content.study.label(arm)
        told = f"the same runs as {label}" if label != arm else "nothing" if arm != reference else "the reference"
        shown = joined(*lines) if lines else tag("span", told, class_="quiet")
        rows.append(tag("div", tag("dt", arm), tag("dd", shown)))
    lead = f"Settings that differ from those of {reference}; all others are the same in every arm."
    file = tag("details", tag("summary", "The study's file"), tag("pre", study_text(content.study.spec), tabindex="0"))
    return section("settings", "What the arms set", paragraph(lead), tag("dl", *rows, class_="settings"), file)


def _changes(content: Content, reference: RunConfig, config: RunConfig) -> list[str]:
    """Settings of an arm that differ, the runs that it reads named by their arms."""
    arms = {run.config.out: f"arm:{run.arms[0]}" for run in content.study.runs}
    read = changed_runs(reference, config, lambda path: arms.get(path, path))
    return [*difference(reference, config), *read]


def machine(content: Content) -> Section:
    """Versions, commit and hardware."""
    rows = machine_rows(content)
    cells = [tag("div", tag("dt", name), tag("dd", value)) for name, value in rows]
    return section("machine", "Versions and machine", tag("dl", *cells, class_="facts") if cells else Html(""))


def reading(content: Content) -> Section:
    """How every number was made."""
    notes = notes_of_table(content.table, _PLAIN) if content.table is not None else []
    return section("reading", "How to read this", listed(notes, "notes"))
