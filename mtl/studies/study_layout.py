"""A table of arms against a baseline, laid out for a terminal, Markdown, LaTeX or a script."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from mtl.studies import sheets
from mtl.studies.comparisons import Comparison
from mtl.studies.sheets import Sheet, Text
from mtl.studies.study_table import ScoreRow, StudyTable
from mtl.studies.table import Cell

StudyLayoutName = Literal["text", "md", "tex", "csv"]

CSV_COLUMNS = (
    *("row", "score", "partial", "arm", "stage", "baseline", "mean", "deviation", "n", "best"),
    *("difference", "low", "high", "standard_error", "degrees", "test", "p", "p_adjusted", "primary"),
    *("distinguishable", "detectable", "untested", "tokens", "target_examples", "flops"),
)


def lay_out_study(table: StudyTable, layout: StudyLayoutName) -> str:
    """The whole table. Scores and differences have one decimal, except in CSV, where they are unrounded."""
    if layout == "csv":
        return _csv(table)
    writers: dict[str, Callable[[Sequence[Sheet], Sequence[str]], str]] = {
        "text": sheets.text,
        "md": sheets.markdown,
        "tex": sheets.latex,
    }
    parts = [_scores(table), _differences(table), _arms(table)]
    return writers[layout](parts, [*_how_to_read(table), *table.notes])


def _scores(table: StudyTable) -> Sheet:
    header = ("task", "score", *(arm.name for arm in table.arms))
    runs = [len(arm.runs) for arm in table.arms]
    rows = []
    for row in table.rows:
        cells = [Text(_score(cell, number), best) for cell, number, best in zip(row.cells, runs, row.best, strict=True)]
        rows.append((Text(_marked(row)), Text(row.score), *cells))
    rows.append((Text("n"), Text("runs"), *(Text(str(number)) for number in runs)))
    return Sheet("Scores", header, tuple(rows), words=2)


def _marked(row: ScoreRow) -> str:
    return row.name + ("*" if row.partial else "")


def _score(cell: Cell | None, runs: int) -> str:
    if cell is None:
        return "-"
    deviation = "" if cell.deviation is None else f" ± {cell.deviation:.1f}"
    return f"{cell.mean:.1f}{deviation}" + ("" if len(cell.values) == runs else f" (n={len(cell.values)})")


def _differences(table: StudyTable) -> Sheet:
    header = ("task", "arm", "test", "outcome", "difference", "95% interval", "df", "p", "p (Holm)", "detectable")
    rows = [tuple(map(Text, _difference(each))) for each in table.comparisons]
    return Sheet(f"Differences to {table.baseline}, in points", header, tuple(rows), words=4)


def _difference(each: Comparison) -> Iterator[str]:
    yield each.row.name if not each.row.members else f"{each.row.name} (mean of {len(each.row.members)})"
    yield each.arm
    if each.estimate is None:
        yield from ("none", "no test", _points(each.difference), "-", "-", "-", "-", "-")
        return
    yield f"{each.pairing} t"
    yield _outcome(each)
    yield _points(each.difference)
    yield f"[{_points(each.estimate.low)}, {_points(each.estimate.high)}]"
    yield f"{each.estimate.degrees:.1f}"
    yield _p_value(each.estimate.p_value)
    yield "primary" if each.primary or each.p_adjusted is None else _p_value(each.p_adjusted)
    yield "-" if each.distinguishable or each.detectable is None else _detectable(each.detectable)


def _outcome(each: Comparison) -> str:
    if each.distinguishable:
        return "better" if each.difference > 0 else "worse"
    return "not distinguishable"


def _detectable(points: float) -> str:
    """Scores end at 100: a test that would need more finds nothing."""
    return f"{points:.1f}" if points <= 100 else ">100"


def _points(value: float) -> str:
    """With its sign; what rounds to nothing has none."""
    shown = f"{value:+.1f}"
    return "0.0" if shown in ("+0.0", "-0.0") else shown


def _p_value(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def _arms(table: StudyTable) -> Sheet:
    """What each arm gained over all tasks, and what it had cost."""
    header = (
        *("arm", "worst task", "delta-m, %", "mean difference", "mean size", "improved"),
        *("tokens", "target examples", "FLOPs"),
    )
    rows = []
    for arm in table.arms:
        gain, cost = table.improvements.get(arm.name), table.costs[arm.name]
        cells = ["-"] * 5
        if gain is not None:
            shown = "not shown" if gain.delta_m is None else _points(gain.delta_m)
            cells = [f"{gain.worst_task} {_points(gain.worst_points)}", shown, _points(gain.mean_points)]
            cells += [f"{gain.mean_size:.1f}", f"{100 * gain.improved:.0f}%"]
        examples = "-" if cost.target_examples is None else f"{cost.target_examples:,.0f}"
        rows.append(tuple(map(Text, (arm.name, *cells, f"{cost.tokens:,.0f}", examples, f"{cost.flops:.2e}"))))
    return Sheet("Over all tasks, and cost", header, tuple(rows), words=2)


def _how_to_read(table: StudyTable) -> list[str]:
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
        "detectable: the true difference that the test would find in 80% of such studies, at the level of Holm's first "
        "step; what is not distinguishable is not known to be equal",
        "bold (> in text): the best, and what is not distinguishable from it; nothing where some arm cannot be tested",
        "delta-m: mean relative change of each task's metrics against the mean of the baseline's seeds; mean "
        "difference and mean size (absolute values) are in points; tasks that no mean counts are left out",
        "cost: means over seeds, what an arm started from included once; '-' where the files do not tell",
    ]
    notes += dict.fromkeys(f"no test: {each.untested}" for each in table.comparisons if each.untested is not None)
    notes += dict.fromkeys(
        f"delta-m is not shown: {gain.withheld}" for gain in table.improvements.values() if gain.withheld is not None
    )
    return notes


def _csv(table: StudyTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    found = {(each.row.name, each.row.members, each.arm): each for each in table.comparisons}
    for row in table.rows:
        for arm, cell, best in zip(table.arms, row.cells, row.best, strict=True):
            if cell is None:
                continue
            each = found.get((row.name, row.members, arm.name))
            cost = table.costs[arm.name]
            writer.writerow(
                (
                    *(row.name, row.score, int(row.partial), arm.name, arm.stage, table.baseline),
                    *(repr(cell.mean), _number(cell.deviation), len(cell.values), int(best)),
                    *(_compared(each) if each is not None else [""] * 12),
                    *(repr(cost.tokens), _number(cost.target_examples), repr(cost.flops)),
                )
            )
    return out.getvalue()


def _compared(each: Comparison) -> list[str]:
    if each.estimate is None:
        return [repr(each.difference), *[""] * 10, each.untested or ""]
    found = each.estimate
    numbers = (each.difference, found.low, found.high, found.standard_error, found.degrees)
    tested = [each.pairing, repr(found.p_value), _number(each.p_adjusted), str(int(each.primary))]
    return [*map(repr, numbers), *tested, str(int(each.distinguishable)), _number(each.detectable), ""]


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)
