"""The legend above a picture: which colour, marker and dashes are which arm's."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from mtl.studies.pictures.labels import INCHES_PER_LETTER, letters_in, wrapped
from mtl.studies.pictures.save import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

_Dashes = Literal["-", "--", ":"]
_DASHES: tuple[_Dashes, ...] = ("-", "--", ":")
LINE = 0.17
"""Inches that a line of a legend takes."""
_HANDLE = 0.45


def legend_columns(names: Collection[str], width: float) -> int:
    """How many columns of such names fit beside each other."""
    widest = max(map(len, names)) * INCHES_PER_LETTER + _HANDLE
    return max(1, min(len(names), int(width / widest)))


def arm_legend(figure: "Figure", arms: Collection[tuple[int, str]], width: float, *, markers: bool = False) -> float:
    """Put a legend of the arms (place among all, name) above the picture; the inches it takes."""
    from matplotlib.lines import Line2D

    handles = []
    for number, arm in sorted(arms):
        colour, marker = style(number)
        handles.append(Line2D([], [], color=colour, label=arm, marker=marker if markers else "", markersize=4.5))
        handles[-1].set_linestyle("none" if markers else line_of(number))
    return legend_above(figure, handles, width)


def legend_above(figure: "Figure", handles: "Sequence[Artist]", width: float) -> float:
    """Put a legend of labelled handles above the picture, in as many columns as fit; the inches it takes."""
    columns = legend_columns([str(handle.get_label()) for handle in handles], width)
    for handle in handles:
        handle.set_label(wrapped(str(handle.get_label()), letters_in(width / columns - _HANDLE)))
    figure.legend(handles=list(handles), loc="outside upper center", ncols=columns, frameon=False, handletextpad=0.5)
    lines = sum(str(handle.get_label()).count("\n") + 1 for handle in handles)
    return LINE * -(-lines // columns)


def line_of(number: int) -> _Dashes:
    """The dashes of the arm at ``number``: the second seven arms, which have the first seven's colours, have others."""
    return _DASHES[number // 7 % len(_DASHES)]
