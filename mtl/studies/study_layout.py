"""A table of arms against a baseline, laid out for a terminal, Markdown, LaTeX or a script."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from mtl.studies import sheets
from mtl.studies.comparisons import Comparison
from mtl.studies.notes import with_spread
from mtl.studies.numbers import csv_number
from mtl.studies.score_grid import GridRow, ScoreGrid, left_out, score_sheet
from mtl.studies.scored_arms import Arm
from mtl.studies.sheets import Sheet, Text, Tone
from mtl.studies.study_table import ScoreRow, StudyTable
from mtl.studies.table import Cell
from mtl.studies.table_layout import Part, TableLayout

StudyLayoutName = Literal["text", "md", "tex", "csv"]

CSV_COLUMNS = (
    *("row", "score", "partial", "arm", "stage", "baseline", "mean", "deviation", "n", "best"),
    *("difference", "low", "high", "standard_error", "degrees", "test", "p", "p_adjusted", "primary"),
    *("distinguishable", "detectable", "untested", "tokens", "target_examples", "flops"),
    *("seeds", "selected_on", "looks", "train_rows", "train_rows_official", "encoder", "known_training_data"),
)


def lay_out_study(table: StudyTable, layout: StudyLayoutName, shown: TableLayout | None = None) -> str:
    """The whole table, or what ``shown`` chooses of it. In CSV numbers have twelve digits, names are the
    study's.

    ConfigError where ``shown`` names rows or arms that the table does not have.
    """
    shown = shown or TableLayout()
    shown.check([row.name for row in table.rows], [arm.name for arm in table.arms])
    if layout == "csv":
        return _csv(table, shown)
    writers: dict[str, Callable[[Sequence[Sheet], Sequence[str]], str]] = {
        "text": sheets.text,
        "md": sheets.markdown,
        "tex": sheets.latex,
    }
    makers = {"scores": scores_sheet, "differences": differences_sheet, "costs": costs_sheet}
    return writers[layout]([makers[part](table, shown) for part in shown.parts], notes_of_table(table, shown))


def scores_sheet(table: StudyTable, shown: TableLayout) -> Sheet:
    """Means and spread, a column for each arm, or with ``transpose`` a row."""
    return score_sheet("Scores", score_grid(table), shown, count=True)


def score_grid(table: StudyTable) -> ScoreGrid:
    """The scores of a table alone."""
    rows = tuple(GridRow(row.name, row.score, row.partial, row.cells, row.best) for row in table.rows)
    return ScoreGrid(tuple(arm.name for arm in table.arms), tuple(len(arm.runs) for arm in table.arms), rows)


def notes_of_table(table: StudyTable, shown: TableLayout) -> list[str]:
    """How to read the table, and what holds for its runs: seeds, selection, rows, encoder."""
    notes = [*_how_to_read(table, shown.parts), *with_spread(table.notes, shown.spread)]
    return [*notes, *shown.note(left_out(score_grid(table), shown))]


def differences_sheet(table: StudyTable, shown: TableLayout) -> Sheet:
    """Every comparison with the baseline, its interval and its test."""
    header = ("task", "arm", "test", "outcome", "difference", "95% interval", "df", "p", "p (Holm)", "detectable")
    rows = [tuple(_difference(each, shown)) for each in _chosen(table, shown)]
    title = f"Differences to {shown.shown(table.baseline)}, in points"
    return Sheet(title, header, tuple(rows), words=4)


def _chosen(table: StudyTable, shown: TableLayout) -> list[Comparison]:
    """The comparisons of the rows and arms that are shown, in their order."""
    rows = shown.row_order([row.name for row in table.rows])
    arms = shown.column_order([arm.name for arm in table.arms])
    kept = [each for each in table.comparisons if each.row.name in rows and each.arm in arms]
    return sorted(kept, key=lambda each: (rows.index(each.row.name), each.row.members or (), arms.index(each.arm)))


def _difference(each: Comparison, shown: TableLayout) -> Iterator[Text]:
    name = shown.shown(each.row.name)
    yield Text(name if not each.row.members else f"{name} (mean of {len(each.row.members)})")
    yield Text(shown.shown(each.arm))
    difference = Text(points(each.difference, shown.decimals))
    if each.estimate is None:
        yield from (Text("none"), Text("no test", tone="quiet"), difference, *[Text("-")] * 5)
        return
    low, high = (points(end, shown.decimals) for end in (each.estimate.low, each.estimate.high))
    yield Text(f"{each.pairing} t")
    yield Text(_outcome(each), tone=_tone(each))
    yield difference
    yield Text(f"[{low}, {high}]")
    yield Text(f"{each.estimate.degrees:.1f}")
    yield Text(p_value(each.estimate.p_value))
    alone = each.primary or each.p_adjusted is None
    yield Text("primary", tone="marked") if alone or each.p_adjusted is None else Text(p_value(each.p_adjusted))
    known = each.distinguishable or each.detectable is None
    yield Text("-" if known or each.detectable is None else detectable(each.detectable, shown.decimals))


def _tone(each: Comparison) -> Tone:
    if not each.distinguishable:
        return "quiet"
    return "good" if each.difference > 0 else "bad"


def _outcome(each: Comparison) -> str:
    if each.distinguishable:
        return "better" if each.difference > 0 else "worse"
    return "not distinguishable"


def detectable(size: float, decimals: int = 1) -> str:
    """A detectable difference in points. Scores end at 100: a test that would need more finds nothing."""
    return f"{size:.{decimals}f}" if size <= 100 else ">100"


def points(value: float, decimals: int = 1) -> str:
    """With its sign; what rounds to nothing has none."""
    shown = f"{value:+.{decimals}f}"
    return shown if float(shown) else shown[1:]


def p_value(value: float) -> str:
    """To three places; what would round to nothing is below a thousandth."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def costs_sheet(table: StudyTable, shown: TableLayout) -> Sheet:
    """What each arm gained over all tasks, and what it had cost."""
    header = (
        *("arm", "worst task", "delta-m, %", "mean difference", "mean size", "improved"),
        *("tokens", "target examples", "FLOPs"),
    )
    rows = []
    for name in shown.column_order([arm.name for arm in table.arms]):
        gain, cost = table.improvements.get(name), table.costs[name]
        cells = ["-"] * 5
        if gain is not None:
            digits = shown.decimals
            relative = "not shown" if gain.delta_m is None else points(gain.delta_m, digits)
            worst = f"{shown.shown(gain.worst_task)} {points(gain.worst_points, digits)}"
            cells = [worst, relative, points(gain.mean_points, digits), f"{gain.mean_size:.{digits}f}"]
            cells.append(f"{100 * gain.improved:.0f}%")
        examples = "-" if cost.target_examples is None else f"{cost.target_examples:,.0f}"
        spent = (f"{cost.tokens:,.0f}", examples, f"{cost.flops:.2e}")
        rows.append(tuple(map(Text, (shown.shown(name), *cells, *spent))))
    return Sheet("Over all tasks, and cost", header, tuple(rows), words=2)


def _how_to_read(table: StudyTable, parts: Collection[Part]) -> list[str]:
    """What was tested how, and what each column of the parts shown means."""
    if table.primary is None:
        first = "no primary comparison was named, so all are secondary: exploratory"
    else:
        named = f"{table.primary.arm} against {table.baseline} by {table.primary.score}"
        first = f"primary comparison: {named}, tested alone; all others are secondary"
    tests = f"{table.secondary} secondary test{'' if table.secondary == 1 else 's'}"
    notes = [
        first,
        f"p (Holm) is corrected for {tests}; the 95% intervals are not corrected",
        "intervals and tests: variance over seeds (t) plus variance over examples, Satterthwaite's degrees of freedom",
        "paired t: at least five seeds whose runs drew the same sequence of tasks; else Welch t",
    ]
    if "differences" in parts:
        notes.append(
            "detectable: the true difference that the test would find in 80% of such studies, at the level of Holm's "
            "first step; what is not distinguishable is not known to be equal"
        )
    else:
        used = dict.fromkeys(f"{each.pairing} t" for each in table.comparisons if each.estimate is not None)
        notes.append(f"tests used: {', '.join(used) or 'none'}; what is not distinguishable is not known to be equal")
    if "scores" in parts:
        notes.append(
            "bold (> in text): the best, and what is not distinguishable from it; nothing where some arm cannot be "
            "tested"
        )
    if "costs" in parts:
        notes += [
            "delta-m: mean relative change of each task's metrics against the mean of the baseline's seeds; mean "
            "difference and mean size (absolute values) are in points; tasks that no mean counts are left out",
            "cost: means over seeds, what an arm started from included once; '-' where the files do not tell",
        ]
    notes += dict.fromkeys(f"no test: {each.untested}" for each in table.comparisons if each.untested is not None)
    if "costs" in parts:
        gains = table.improvements.values()
        notes += dict.fromkeys(f"delta-m is not shown: {gain.withheld}" for gain in gains if gain.withheld is not None)
    return notes


def _csv(table: StudyTable, shown: TableLayout) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    rows = shown.row_order([row.name for row in table.rows])
    arms = shown.column_order([arm.name for arm in table.arms])
    for row in sorted((row for row in table.rows if row.name in rows), key=lambda row: rows.index(row.name)):
        for place in sorted(range(len(table.arms)), key=lambda place: _rank(table.arms[place].name, arms)):
            cell = row.cells[place]
            if table.arms[place].name in arms and cell is not None:
                writer.writerow(_csv_line(table, row, place, cell))
    return out.getvalue()


def _rank(name: str, order: Sequence[str]) -> int:
    return order.index(name) if name in order else len(order)


def _csv_line(table: StudyTable, row: ScoreRow, place: int, cell: Cell) -> tuple[object, ...]:
    arm = table.arms[place]
    against = (
        each
        for each in table.comparisons
        if (each.row.name, each.row.members, each.arm) == (row.name, row.members, arm.name)
    )
    each = next(against, None)
    cost = table.costs[arm.name]
    return (
        *(row.name, row.score, int(row.partial), arm.name, arm.stage, table.baseline),
        *(csv_number(cell.mean), csv_number(cell.deviation), len(cell.values), int(row.best[place])),
        *(_compared(each) if each is not None else [""] * 12),
        *(csv_number(cost.tokens), csv_number(cost.target_examples), csv_number(cost.flops)),
        *_told(arm, row),
    )


def _told(arm: Arm, row: ScoreRow) -> Iterator[str]:
    """What the notes of other layouts say: seeds, selection and looks, rows trained on, encoder and its own data."""
    members = row.members or (row.name,)
    records = [arm.record(run).tasks[name] for name in members for run in arm.scoring(name)]
    yield _joined(run.result.seed for run in arm.runs)
    yield _joined(record.selected_on for record in records)
    yield _joined(sorted({record.looks for record in records}))
    for train in ("train_rows", "train_rows_official"):
        sizes = [getattr(record, train) for record in records] if not row.members else []
        yield _joined(size for size in sizes if size is not None)
    yield _joined(run.result.encoder.path for run in arm.runs)
    yield _joined(name for run in arm.runs for name in run.result.encoder.known_training_data)


def _joined(values: Iterable[object]) -> str:
    return "; ".join(dict.fromkeys(map(str, values)))


def _compared(each: Comparison) -> list[str]:
    if each.estimate is None:
        return [csv_number(each.difference), *[""] * 10, each.untested or ""]
    found = each.estimate
    numbers = (each.difference, found.low, found.high, found.standard_error, found.degrees)
    tested = [each.pairing, csv_number(found.p_value), csv_number(each.p_adjusted), str(int(each.primary))]
    return [*map(csv_number, numbers), *tested, str(int(each.distinguishable)), csv_number(each.detectable), ""]
