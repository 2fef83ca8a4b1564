"""Tables of scores as text for a terminal, Markdown, LaTeX, or CSV for a script."""

import csv
import io
from collections.abc import Sequence
from typing import Literal

from mtl.records import StageName
from mtl.studies.columns import aligned
from mtl.studies.notes import with_spread
from mtl.studies.numbers import csv_number
from mtl.studies.score_grid import GridRow, ScoreGrid, left_out, score_sheet
from mtl.studies.sheets import Sheet, latex, markdown_rows
from mtl.studies.sheets import escaped as _escaped
from mtl.studies.table import ArmTable
from mtl.studies.table_layout import TableLayout

Layout = Literal["text", "md", "tex", "csv"]
LAYOUTS: tuple[Layout, ...] = ("text", "md", "tex", "csv")
TITLES: dict[StageName, str] = {"single": "single", "joint": "joint", "finetune": "joint + fine-tuned"}


def lay_out(tables: Sequence[ArmTable], layout: Layout, shown: TableLayout | None = None) -> str:
    """All tables, each ending in a line break. Scores have one decimal, except in CSV, where they have twelve digits.

    ``shown`` chooses, orders and names rows and columns, which are stages, called as in the table's header.
    """
    shown = shown or TableLayout()
    shown.check(
        [row.name for table in tables for row in table.rows], [name for table in tables for name in _columns(table)]
    )
    if layout == "csv":
        return _csv(tables, shown)
    if layout == "tex":
        return "\n".join(latex([_sheet(table, shown)], _notes(table, shown)) for table in tables)
    lay_out_one = _text if layout == "text" else _markdown
    return "\n".join("\n".join(lay_out_one(table, shown)) + "\n" for table in tables)


def _text(table: ArmTable, shown: TableLayout) -> list[str]:
    sheet = _sheet(table, shown)
    rows = [[cell.text for cell in row] for row in sheet.body]
    return [
        f"arm {table.arm_hash[:12]}",
        *aligned(sheet.header, rows, left=range(sheet.words)),
        "",
        *_notes(table, shown),
    ]


def _markdown(table: ArmTable, shown: TableLayout) -> list[str]:
    notes = [f"- {_escaped(note)}" for note in _notes(table, shown)]
    return [f"Arm `{table.arm_hash[:12]}`", "", *markdown_rows(_sheet(table, shown)), "", *notes]


def _sheet(table: ArmTable, shown: TableLayout) -> Sheet:
    return score_sheet(f"Arm {table.arm_hash[:12]}", _grid(table), shown, count=False)


def _notes(table: ArmTable, shown: TableLayout) -> list[str]:
    return [*with_spread(table.notes, shown.spread), *shown.note(left_out(_grid(table), shown))]


def _grid(table: ArmTable) -> ScoreGrid:
    plain = tuple(False for _ in table.stages)
    rows = tuple(GridRow(row.name, row.score, row.partial, row.cells, plain) for row in table.rows)
    return ScoreGrid(_columns(table), tuple(len(table.seeds) for _ in table.stages), rows)


def _columns(table: ArmTable) -> tuple[str, ...]:
    return tuple(TITLES[stage] for stage in table.stages)


def _csv(tables: Sequence[ArmTable], shown: TableLayout) -> str:
    """A line for each row and stage, so that arms with different stages share the same columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("arm", "task", "score", "partial", "stage", "mean", "deviation", "n"))
    for table in tables:
        rows = shown.row_order([row.name for row in table.rows])
        columns = shown.column_order(_columns(table))
        for row in sorted((row for row in table.rows if row.name in rows), key=lambda row: rows.index(row.name)):
            cells = dict(zip(_columns(table), zip(table.stages, row.cells, strict=True), strict=True))
            for stage, cell in (cells[name] for name in columns):
                if cell is not None:
                    numbers = (csv_number(cell.mean), csv_number(cell.deviation), len(cell.values))
                    writer.writerow((table.arm_hash, row.name, row.score, int(row.partial), stage, *numbers))
    return out.getvalue()
