"""Sheets of cells as text for a terminal, Markdown, or LaTeX with booktabs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mtl.studies.columns import aligned

_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
}


_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"

Tone = Literal["plain", "good", "bad", "quiet", "marked"]


@dataclass(frozen=True)
class Text:
    """What stands in a cell; ``bold`` where it is to stand out. Where there are colours, ``tone`` is one;
    ``marked`` is the one row of its sheet that matters most.
    """

    text: str
    bold: bool = False
    tone: Tone = "plain"


@dataclass(frozen=True)
class Sheet:
    """One table: its title, a header, rows of as many cells, and the number of columns from the left that are words.

    ``second_header`` is a second line of the header, where there is one.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    words: int = 1
    second_header: tuple[str, ...] = ()

    @property
    def body(self) -> tuple[tuple[Text, ...], ...]:
        """The rows, for layouts whose header has one line: what is beyond that comes first."""
        return (tuple(map(Text, self.second_header)), *self.rows) if self.second_header else self.rows


def text(sheets: Sequence[Sheet], notes: Sequence[str]) -> str:
    """For a terminal; what is bold has ``>`` before it."""
    lines: list[str] = []
    for sheet in sheets:
        rows = [["> " + cell.text if cell.bold else cell.text for cell in row] for row in sheet.body]
        lines += [sheet.title, *aligned(sheet.header, rows, left=range(sheet.words)), ""]
    return "\n".join([*lines, *notes]) + "\n"


def markdown(sheets: Sequence[Sheet], notes: Sequence[str]) -> str:
    """Pipe tables, and the notes as a list."""
    lines: list[str] = []
    for sheet in sheets:
        lines += [f"**{escaped(sheet.title)}**", "", *markdown_rows(sheet), ""]
    return "\n".join([*lines, *(f"- {escaped(note)}" for note in notes)]) + "\n"


def markdown_rows(sheet: Sheet) -> list[str]:
    """The lines of one pipe table."""
    marks = [":--" if place < sheet.words else "--:" for place in range(len(sheet.header))]
    rows = [[_strong(cell) for cell in row] for row in sheet.body]
    cells = [[escaped(title) for title in sheet.header], marks, *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def escaped(plain: str) -> str:
    """``plain`` without what Markdown would take for a mark of its own."""
    return plain.replace("|", "\\|").replace("*", "\\*")


def latex(sheets: Sequence[Sheet], notes: Sequence[str]) -> str:
    """A fragment for a document that loads booktabs and graphicx: a table for each sheet, the notes under the last.

    A table that is wider than the text is made smaller, so that it never runs into the margin.
    """
    lines = [r"% Needs \usepackage{booktabs,graphicx}; \usepackage[T1]{fontenc} for all signs."]
    for place, sheet in enumerate(sheets):
        columns = "l" * sheet.words + "r" * (len(sheet.header) - sheet.words)
        lines += [r"\begin{table}", r"\centering\small", rf"\caption{{{_tex(sheet.title)}}}"]
        lines += [rf"{_FITTED}{{\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule"]
        heads = [head for head in (sheet.header, sheet.second_header) if head]
        lines += [" & ".join(map(_tex, head)) + r" \\" for head in heads]
        lines += [r"\midrule", *(" & ".join(map(_tex_cell, row)) + r" \\" for row in sheet.rows)]
        lines += [r"\bottomrule", r"\end{tabular}}"]
        if place == len(sheets) - 1 and notes:
            lines += [r"\begin{flushleft}\footnotesize", *(rf"{_tex(note)}\par" for note in notes), r"\end{flushleft}"]
        lines += [r"\end{table}", ""]
    return "\n".join(lines)


def _strong(cell: Text) -> str:
    return f"**{escaped(cell.text)}**" if cell.bold else escaped(cell.text)


def _tex_cell(cell: Text) -> str:
    # A bracket after a line's end would be taken for the argument of the line break.
    shown = re.sub(r"^\[", "{[}", _tex(cell.text))
    return rf"\textbf{{{shown}}}" if cell.bold else shown


def _tex(plain: str) -> str:
    shown = "".join(_TEX.get(character, character) for character in plain)
    # A minus sign is not a hyphen; a word with a digit after its hyphen has one.
    return re.sub(r"(?<![\w-])-(?=\d)", "$-$", shown)
