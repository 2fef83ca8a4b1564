"""Tables of a page: sheets as HTML, each within a box that scrolls by itself where the screen is narrow."""

import itertools
import re
from collections.abc import Sequence

from mtl.studies.report.html import Html, tag
from mtl.studies.sheets import Sheet, Text

_MINUS = re.compile(r"(?<![\w/.])-(?=\d)")


def table(sheet: Sheet, *, wrap: bool = False) -> Html:
    """``sheet`` with its first column as the head of each row, or of rows in turn that have the same there.

    With ``wrap`` the last column has lines of text.
    """
    heads = [
        tag("tr", *(_head(name, place, sheet.words) for place, name in enumerate(head)))
        for head in (sheet.header, sheet.second_header)
        if head
    ]
    groups = [list(rows) for _, rows in itertools.groupby(sheet.rows, key=lambda row: row[0].text)]
    grouped = any(len(group) > 1 for group in groups)
    rows = [_row(row, place, len(group), sheet.words) for group in groups for place, row in enumerate(group)]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", sheet.title),
            tag("thead", *heads),
            tag("tbody", *rows),
            class_="grouped" if grouped else None,
        ),
        class_="scroll wrap" if wrap else "scroll",
        role="region",
        aria_label=sheet.title,
        tabindex="0",
    )


def plain_sheet(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> Sheet:
    """A sheet of plain text."""
    return Sheet(title, tuple(header), tuple(tuple(map(Text, row)) for row in rows), words)


def _row(row: Sequence[Text], place: int, size: int, words: int) -> Html:
    """The row at ``place`` of a group of ``size``, whose head the first of them has."""
    cells = [_cell(cell, column, words) for column, cell in enumerate(row) if column]
    if place == 0:
        rows = None if size == 1 else str(size)
        cells.insert(0, tag("th", _shown(row[0].text), scope="row" if size == 1 else "rowgroup", rowspan=rows))
    classes = [
        name for name, holds in (("first", place == 0), ("marked", any(cell.tone == "marked" for cell in row))) if holds
    ]
    return tag("tr", *cells, class_=" ".join(classes) or None)


def _head(name: str, column: int, words: int) -> Html:
    return tag("th", name, scope="col", class_=None if column < words else "number")


def _cell(cell: Text, column: int, words: int) -> Html:
    shown = _shown(cell.text)
    classes = [] if column < words else ["number"]
    if cell.tone != "plain":
        classes.append(cell.tone)
    return tag("td", tag("strong", shown) if cell.bold else shown, class_=" ".join(classes) or None)


def _shown(text: str) -> str:
    """With minus signs for hyphens before numbers, and a dash where there is nothing."""
    return "–" if text == "-" else _MINUS.sub("−", text)
