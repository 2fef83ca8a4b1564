"""Comma-separated files as RFC 4180 has them: cells may be quoted, and then hold commas, quotes and line ends."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from mtl.data.readers.table import Table, column_positions
from mtl.data.readers.text import decode
from mtl.errors import DataError


def parse(content: bytes, path: Path, *, wanted: Sequence[str]) -> Table:
    """The ``wanted`` columns of a file whose first row names them; ``path`` is for messages only.

    DataError, with file and line (the row's first), for bytes that are not UTF-8, wrong quoting, an absent or repeated
    column, and a row too short or too long. Blank lines at the end are no rows.
    """
    records = _records(content, path)
    header = next(records, None)
    if header is None:
        raise DataError(f"{path}: the file is empty; its first line has to name the columns {', '.join(wanted)}")
    width, positions = len(header[1]), column_positions(header[1], wanted, path)
    columns: dict[str, list[str]] = {name: [] for name in wanted}
    line_numbers = []
    for line, cells in records:
        if len(cells) != width:
            raise DataError(
                f"{path}, line {line}: {len(cells)} columns where the header has {width}; a text that holds a comma or "
                "a line end stands in double quotes: mend or remove the row"
            )
        for name, place in positions.items():
            columns[name].append(cells[place])
        line_numbers.append(line)
    return Table(columns, line_numbers)


def count_rows(content: bytes, path: Path) -> int:
    """How many rows ``parse`` would give, without a check of their width."""
    return max(sum(1 for _ in _records(content, path)) - 1, 0)


def _records(content: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The first line and the cells of each record; a line without anything is a record of one empty cell."""
    text = decode(content, path).rstrip("\r\n")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells or [""]
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}; mend this row, or its quoting") from error
