"""Rows of text in columns that line up."""

import unicodedata
from collections.abc import Collection, Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> list[str]:
    """A line for the header and each row; the columns named in ``left`` begin at the same place, others end there."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(_padded(cells, widths, left)).rstrip() for cells in lines]


def _padded(cells: Sequence[str], widths: Sequence[int], left: Collection[int]) -> list[str]:
    spaces = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
    return [
        cell + space if number in left else space + cell
        for number, (cell, space) in enumerate(zip(cells, spaces, strict=True))
    ]


def _width(text: str) -> int:
    """Columns of a terminal: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
