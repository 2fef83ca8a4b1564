"""The transfer matrix as a figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtl.studies.pictures.labels import task_labels, widest
from mtl.studies.pictures.save import BAND
from mtl.studies.pictures.transfer import TransferCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_TITLES = {"joint": "joint", "finetune": "joint + fine-tuned"}
_ROW = 0.3
_NARROW = 5.0
_WIDTH_OF_DECIMALS = 0.42
"""Inches a cell must have so that a number with its decimal fits."""


def draw_transfer(figure: "Figure", points: Sequence[TransferCell], width: float) -> None:
    """A matrix for each stage, its cells coloured by difference where it is distinguishable, else grey."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    stages = list(dict.fromkeys(cell.stage for cell in points))
    tasks = list(dict.fromkeys(cell.target for cell in points))
    labels = task_labels(tasks)
    across = 1 if width < _NARROW else len(stages)
    space = (width - across * (widest(list(labels.values())) + 0.45)) / across / len(tasks)
    upright = widest(list(labels.values())) > space
    lines = max(label.count("\n") for label in labels.values()) + 1
    above = widest(list(labels.values())) if upright else 0.14 * lines
    down = len(stages) // across
    height = len(tasks) * max(_ROW, 0.14 * lines + 0.06) + above + 0.45
    figure.set_size_inches(width, down * height + 0.85)
    # The ends of the scale are so dark that black numbers could not be read on them.
    colours = LinearSegmentedColormap.from_list("differences", colormaps["RdBu"]([0.2, 0.35, 0.5, 0.65, 0.8]))
    limit = _limit(points)
    scale = ScalarMappable(Normalize(-limit, limit), colours)
    panels = figure.subplots(down, across, squeeze=False).flat
    for axes, stage in zip(panels, stages, strict=True):
        mine = [cell for cell in points if cell.stage == stage]
        _draw_matrix(axes, mine, tasks, scale, decimals=space > _WIDTH_OF_DECIMALS)
        axes.set_xticks(range(len(tasks)), [labels[task] for task in tasks], rotation=90 if upright else 0)
        axes.set_yticks(range(len(tasks)), [labels[task] for task in tasks])
        axes.set_xlabel("target" if len(stages) == 1 else f"target ({_TITLES[stage]})")
        axes.set_ylabel("trained together with")
    bar = figure.colorbar(scale, ax=list(figure.axes), location="bottom", aspect=40, pad=0.02)
    bar.outline.set_linewidth(0.6)  # type: ignore[operator]
    bar.set_label(_explanation(points, short=width < _NARROW))


def _limit(points: Sequence[TransferCell]) -> float:
    found = [abs(cell.difference) for cell in points if cell.difference is not None and cell.distinguishable]
    every = [abs(cell.difference) for cell in points if cell.difference is not None]
    return max(found or every, default=0.0) or 1.0


def _draw_matrix(
    axes: "Axes", cells: Sequence[TransferCell], tasks: Sequence[str], scale: "Colormap | object", *, decimals: bool
) -> None:
    from matplotlib.patches import Rectangle

    def fill(row: int, column: int, colour: object, text: str) -> None:
        axes.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.0)  # type: ignore[arg-type]
        )
        axes.text(column, row, text, ha="center", va="center")

    for cell in cells:
        colour = scale.to_rgba(cell.difference) if cell.distinguishable else BAND  # type: ignore[union-attr]
        text = _number(cell.difference, decimals, sign=True)
        if cell.difference is None:
            colour = "white"
        elif cell.untested is not None:
            text = f"({text})"
        fill(tasks.index(cell.auxiliary), tasks.index(cell.target), colour, text)
    for place, task in enumerate(tasks):
        alone = next((cell.alone for cell in cells if cell.target == task), None)
        fill(place, place, "white", _number(alone, decimals, sign=False))
    axes.set_xlim(-0.5, len(tasks) - 0.5)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _number(value: float | None, decimals: bool, *, sign: bool) -> str:
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''}.{1 if decimals else 0}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _explanation(points: Sequence[TransferCell], *, short: bool) -> str:
    parts = ["difference to training alone (on the diagonal), points", "grey: not distinguishable (Holm)"]
    if any(cell.untested is not None for cell in points):
        parts.append("in brackets: not tested")
    if any(cell.difference is None for cell in points):
        parts.append("–: no run")
    if short:
        return "\n".join(["difference to training alone", "(on the diagonal), points", *parts[1:]])
    return f"{parts[0]}\n{'; '.join(parts[1:])}"
