"""Files of one JSON object a line; a line ends at a line feed only, since texts hold other line ends."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mtl.data.readers.table import Table, label_cell, text_cell
from mtl.data.readers.text import decode
from mtl.errors import DataError


def parse(content: bytes, path: Path, *, texts: Sequence[str], label: str | None) -> Table:
    """The columns ``texts`` and ``label`` of every object; ``path`` is for messages only.

    DataError, with file and line, for a line that is no JSON object or lacks a key, and a text that is none. Blank
    lines are no rows.
    """
    columns: dict[str, list[str]] = {name: [] for name in (*texts, *(() if label is None else (label,)))}
    line_numbers = []
    for number, line in _lines(content, path):
        where = f"{path}, line {number}"
        row = _object(line, where)
        for name, cells in columns.items():
            if name not in row:
                raise DataError(f"{where}: the key {name!r} is absent among {', '.join(row)}; mend or remove the line")
            cell = label_cell if name == label else text_cell
            cells.append(cell(row[name], name, where))
        line_numbers.append(number)
    return Table(columns, line_numbers)


def count_rows(content: bytes) -> int:
    """How many rows ``parse`` would give, without a check of what the lines hold."""
    return sum(1 for line in content.split(b"\n") if line.strip())


def _lines(content: bytes, path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(decode(content, path).split("\n"), start=1):
        if line.strip():
            yield number, line


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); a file of JSON lines has one object on each") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: not a JSON object but {line[:60]}; a file of JSON lines has one object on each")
    return row
