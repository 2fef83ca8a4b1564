"""Tables of scores as text for a terminal, Markdown, LaTeX, or CSV for a script."""

import csv
import io
from collections.abc import Sequence
from typing import Literal

from mtl.records import StageName
from mtl.studies.columns import aligned
from mtl.studies.sheets import Sheet, Text, latex
from mtl.studies.table import ArmTable, Cell, TableRow

Layout = Literal["text", "md", "tex", "csv"]
LAYOUTS: tuple[Layout, ...] = ("text", "md", "tex", "csv")
_TITLES: dict[StageName, str] = {"single": "single", "joint": "joint", "finetune": "joint + fine-tuned"}


def lay_out(tables: Sequence[ArmTable], layout: Layout) -> str:
    """All tables, each ending in a line break. Scores have one decimal, except in CSV, where they are unrounded."""
    if layout == "csv":
        return _csv(tables)
    if layout == "tex":
        return "\n".join(_latex(table) for table in tables)
    lay_out_one = _text if layout == "text" else _markdown
    return "\n".join("\n".join(lay_out_one(table)) + "\n" for table in tables)


def _text(table: ArmTable) -> list[str]:
    lines = aligned(_header(table), [_cells(row, table) for row in table.rows], left=(0, 1))
    return [f"arm {table.arm_hash[:12]}", *lines, "", *table.notes]


def _markdown(table: ArmTable) -> list[str]:
    header = _header(table)
    marks = [":--", ":--", *["--:"] * len(table.stages)]
    rows = [[_escaped(cell) for cell in _cells(row, table)] for row in table.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (header, marks, *rows)]
    return [f"Arm `{table.arm_hash[:12]}`", "", *lines, "", *(f"- {_escaped(note)}" for note in table.notes)]


def _latex(table: ArmTable) -> str:
    rows = tuple(tuple(map(Text, _cells(row, table))) for row in table.rows)
    return latex([Sheet(f"Arm {table.arm_hash[:12]}", tuple(_header(table)), rows, words=2)], table.notes)


def _header(table: ArmTable) -> list[str]:
    return ["task", "score", *(_TITLES[stage] for stage in table.stages)]


def _cells(row: TableRow, table: ArmTable) -> list[str]:
    return [row.name + ("*" if row.partial else ""), row.score, *(_shown(cell, len(table.seeds)) for cell in row.cells)]


def _shown(cell: Cell | None, runs: int) -> str:
    """Mean and deviation; the number of runs where it is not that of the table."""
    if cell is None:
        return "-"
    deviation = "" if cell.deviation is None else f" ± {cell.deviation:.1f}"
    number = "" if len(cell.values) == runs else f" (n={len(cell.values)})"
    return f"{cell.mean:.1f}{deviation}{number}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _csv(tables: Sequence[ArmTable]) -> str:
    """A line for each row and stage, so that arms with different stages share the same columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("arm", "task", "score", "partial", "stage", "mean", "deviation", "n"))
    for table in tables:
        for row in table.rows:
            for stage, cell in zip(table.stages, row.cells, strict=True):
                if cell is not None:
                    deviation = "" if cell.deviation is None else repr(cell.deviation)
                    numbers = (repr(cell.mean), deviation, len(cell.values))
                    writer.writerow((table.arm_hash, row.name, row.score, int(row.partial), stage, *numbers))
    return out.getvalue()
