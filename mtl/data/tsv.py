"""Tab-separated files exactly as the benchmarks publish them: no quoting, and no row silently changed.

Rows end at a line feed only (with or without a carriage return before it), since texts hold other characters that
Unicode calls line ends. A quotation mark is text. A byte-order mark at the start and blank lines at the end are
dropped. Every row has as many columns as the header.
"""

from collections.abc import Sequence
from pathlib import Path

from mtl.data.readers.table import Table, column_positions
from mtl.data.readers.text import BYTE_ORDER_MARK, decode
from mtl.errors import DataError

_LINE_ENDS = "\r\n"


def parse(
    content: bytes,
    path: Path,
    *,
    wanted: Sequence[str],
    header: Sequence[str] | None = None,
    official_rows: int | None = None,
) -> Table:
    """The ``wanted`` columns of a file's ``content``; ``path`` is for messages only.

    ``header`` names the columns of a file without a header line. DataError, with file and line, for bytes that are
    not UTF-8, an absent or repeated column, and a row too short or too long. One exception: where the well-formed
    rows number exactly ``official_rows``, the others are dropped and counted, because official files have such lines
    themselves (QQP's train.tsv has sentences torn in three) and everyone's row counts leave them out.
    """
    lines = decode(content, path).rstrip(_LINE_ENDS).split("\n")
    if lines == [""]:
        lines = []
    first_row = 0
    if header is None:
        if not lines:
            raise DataError(f"{path}: the file is empty; its first line has to name the columns {', '.join(wanted)}")
        header = lines[0].removesuffix("\r").split("\t")
        first_row = 1
    positions = column_positions(header, wanted, path)
    width = len(header)
    rows: list[list[str]] = []
    line_numbers: list[int] = []
    malformed: list[tuple[int, int]] = []
    for number, line in enumerate(lines[first_row:], start=first_row + 1):
        cells = line.removesuffix("\r").split("\t")
        if len(cells) != width:
            malformed.append((number, len(cells)))
            continue
        rows.append(cells)
        line_numbers.append(number)
    if malformed and len(rows) != official_rows:
        raise DataError(_malformed_message(path, malformed, width))
    columns = {name: [cells[at] for cells in rows] for name, at in positions.items()}
    return Table(columns, line_numbers, len(malformed))


def count_rows(content: bytes, *, header: Sequence[str] | None = None, official_rows: int | None = None) -> int:
    """How many rows ``parse`` would give, counted over the bytes, without a check of what they hold."""
    content = content.removeprefix(BYTE_ORDER_MARK).rstrip(_LINE_ENDS.encode())
    if not content:
        return 0
    rows = content.count(b"\n") + (header is not None)
    if official_rows is None or rows <= official_rows:
        return rows
    # Only a file longer than the official count can be one whose malformed lines are dropped.
    lines = content.split(b"\n")
    tabs = lines[0].count(b"\t") if header is None else len(header) - 1
    well_formed = sum(line.count(b"\t") == tabs for line in lines) - (header is None)
    return official_rows if well_formed == official_rows else rows


def _malformed_message(path: Path, malformed: list[tuple[int, int]], width: int) -> str:
    line, columns = malformed[0]
    others = f" (and {len(malformed) - 1} more such lines)" if len(malformed) > 1 else ""
    return (
        f"{path}, line {line}: {columns} columns where the header has {width}{others}; "
        "a text may hold no tab and no line feed: mend or remove the line"
    )
