"""The transfer matrix as a figure."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtl.studies.pictures.labels import letters_in, task_labels, widest, wrapped
from mtl.studies.pictures.save import BAND
from mtl.studies.pictures.stage_lines import STAGE_LINES
from mtl.studies.pictures.transfer import TransferCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

_ROW = 0.3
_NARROW = 5.0
_MOST_OF_WIDTH = 0.28
"""Of a matrix's width, what names at its side may take."""
_WIDTH_OF_DECIMALS = 0.42
"""Inches a cell must have so that a number with its decimal fits."""


def draw_transfer(figure: "Figure", points: Sequence[TransferCell], width: float) -> None:
    """A matrix for each stage, its cells coloured by difference where it is distinguishable, else grey."""
    stages = list(dict.fromkeys(cell.stage for cell in points))
    tasks = list(dict.fromkeys(cell.target for cell in points))
    across = 1 if width < _NARROW else len(stages)
    down = len(stages) // across
    labels = task_labels(tasks, letters=1000)
    key = ""
    if widest(list(labels.values())) > _MOST_OF_WIDTH * width / across:
        # Long names would leave no room for cells; numbers stand for them.
        key = "\n".join(wrapped(f"{place}: {labels[task]}", letters_in(width)) for place, task in enumerate(tasks, 1))
        labels = {task: str(place) for place, task in enumerate(tasks, 1)}
        figure.suptitle(key, fontsize=8, x=0.01, ha="left")
    longest = widest(list(labels.values()))
    space = (width / across - longest - 0.45) / len(tasks)
    upright = longest > space
    height = len(tasks) * _ROW + (longest if upright else 0.14) + 0.45
    explanation = _explanation(points, letters_in(0.95 * width))
    below = 0.45 + 0.14 * explanation.count("\n")
    figure.set_size_inches(width, down * height + below + (0.14 * (key.count("\n") + 1) if key else 0))
    scale = _scale(points)
    panels = figure.subplots(down, across, squeeze=False).flat
    for axes, stage in zip(panels, stages, strict=True):
        mine = [cell for cell in points if cell.stage == stage]
        _draw_matrix(axes, mine, tasks, scale, decimals=space > _WIDTH_OF_DECIMALS)
        axes.set_xticks(range(len(tasks)), [labels[task] for task in tasks], rotation=90 if upright else 0)
        axes.set_yticks(range(len(tasks)), [labels[task] for task in tasks])
        axes.set_xlabel("target" if len(stages) == 1 else f"target ({STAGE_LINES[stage].name})")
        axes.set_ylabel("trained together with")
    bar = figure.colorbar(scale, ax=list(figure.axes), location="bottom", aspect=40, pad=0.02)
    bar.outline.set_linewidth(0.6)
    bar.set_label(explanation)


def _scale(points: Sequence[TransferCell]) -> "ScalarMappable":
    """Colours of differences, zero in the middle; the ends not so dark that black numbers could not be read on them."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("differences", colormaps["RdBu"]([0.2, 0.35, 0.5, 0.65, 0.8]))
    limit = _limit(points)
    return ScalarMappable(Normalize(-limit, limit), colours)


def _limit(points: Sequence[TransferCell]) -> float:
    found = [abs(cell.difference) for cell in points if cell.difference is not None and cell.distinguishable]
    every = [abs(cell.difference) for cell in points if cell.difference is not None]
    return max(found or every, default=0.0) or 1.0


def _draw_matrix(
    axes: "Axes", cells: Sequence[TransferCell], tasks: Sequence[str], scale: "ScalarMappable", *, decimals: bool
) -> None:
    for cell in cells:
        colour = scale.to_rgba(np.array(cell.difference)) if cell.distinguishable else BAND
        text = _number(cell.difference, decimals, sign=True)
        place = tasks.index(cell.auxiliary), tasks.index(cell.target)
        slant = "normal" if cell.untested is None else "italic"
        _fill(axes, *place, "white" if cell.difference is None else colour, text, slant)
    for number, task in enumerate(tasks):
        alone = next((cell.alone for cell in cells if cell.target == task), None)
        _fill(axes, number, number, "white", _number(alone, decimals, sign=False), "normal")
    axes.set_xlim(-0.5, len(tasks) - 0.5)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _fill(axes: "Axes", row: int, column: int, colour: Any, text: str, slant: str) -> None:
    from matplotlib.patches import Rectangle

    corner = column - 0.5, row - 0.5
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=1.0))
    axes.text(column, row, text, ha="center", va="center", fontstyle=slant)


def _number(value: float | None, decimals: bool, *, sign: bool) -> str:
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''}z.{1 if decimals else 0}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _explanation(points: Sequence[TransferCell], letters: int) -> str:
    lines = ["difference to training alone (on the diagonal), points", "grey: not distinguishable (Holm)"]
    if any(cell.untested is not None for cell in points):
        lines.append("italics: not tested")
    if any(cell.difference is None for cell in points):
        lines.append("–: no run")
    whole = "; ".join(lines[1:])
    return "\n".join([*textwrap.wrap(lines[0], letters), *textwrap.wrap(whole, letters)])
