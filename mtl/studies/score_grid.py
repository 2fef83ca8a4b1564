"""Scores in rows and columns as one sheet, chosen, ordered and named as a layout says."""

from collections.abc import Sequence
from dataclasses import dataclass

from mtl.studies.sheets import Sheet, Text
from mtl.studies.statistics.mean import interval_of_mean
from mtl.studies.table import Cell
from mtl.studies.table_layout import Spread, TableLayout


@dataclass(frozen=True)
class GridRow:
    """A task or suite; ``best`` are the columns that stand out."""

    name: str
    score: str
    partial: bool
    cells: tuple[Cell | None, ...]
    best: tuple[bool, ...]


@dataclass(frozen=True)
class ScoreGrid:
    """``runs`` is the number of runs of each column."""

    columns: tuple[str, ...]
    runs: tuple[int, ...]
    rows: tuple[GridRow, ...]


def score_sheet(title: str, grid: ScoreGrid, layout: TableLayout, *, count: bool) -> Sheet:
    """The sheet of ``grid``; with ``count`` the number of runs of each column is its last row."""
    places = [grid.columns.index(name) for name in layout.column_order(grid.columns)]
    wanted = layout.row_order([row.name for row in grid.rows])
    rows = sorted((row for row in grid.rows if row.name in wanted), key=lambda row: wanted.index(row.name))
    header = ("task", "score", *(layout.shown(grid.columns[place]) for place in places))
    lines = [_line(row, places, grid.runs, layout) for row in rows]
    if count:
        lines.append((Text("n"), Text("runs"), *(Text(str(grid.runs[place])) for place in places)))
    if layout.transpose:
        return _transposed(title, header, lines)
    return Sheet(title, header, tuple(lines), words=2)


def left_out(grid: ScoreGrid, layout: TableLayout) -> int:
    """How many rows and columns the layout leaves out."""
    names = [row.name for row in grid.rows]
    rows = sum(name not in layout.row_order(names) for name in names)
    return rows + len(grid.columns) - len(layout.column_order(grid.columns))


def _line(row: GridRow, places: Sequence[int], runs: Sequence[int], layout: TableLayout) -> tuple[Text, ...]:
    cells = [Text(shown_cell(row.cells[place], runs[place], layout), row.best[place]) for place in places]
    return Text(layout.shown(row.name) + ("*" if row.partial else "")), Text(row.score), *cells


def shown_cell(cell: Cell | None, runs: int, layout: TableLayout) -> str:
    """Mean and spread; the number of scores where it is not that of the column's runs."""
    if cell is None:
        return "-"
    spread = _spread(cell, layout.spread)
    shown = "" if spread is None else f" ± {spread:.{layout.decimals}f}"
    return f"{cell.mean:.{layout.decimals}f}{shown}" + ("" if len(cell.values) == runs else f" (n={len(cell.values)})")


def _spread(cell: Cell, spread: Spread) -> float | None:
    if spread == "none":
        return None
    if spread == "deviation":
        return cell.deviation
    low, high = interval_of_mean(cell.values)
    return None if low is None or high is None else (high - low) / 2


def _transposed(title: str, header: Sequence[str], lines: Sequence[Sequence[Text]]) -> Sheet:
    """Columns as rows; what each score is stands under its name."""
    names = ("arm", *(line[0].text for line in lines))
    metrics = ("", *(line[1].text for line in lines))
    rows = tuple((Text(header[place]), *(line[place] for line in lines)) for place in range(2, len(header)))
    return Sheet(title, names, rows, words=1, second_header=metrics)
