"""Realised task probabilities as a figure: shares stacked over the training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtl.studies.pictures.labels import letters_in, task_labels, wrapped
from mtl.studies.pictures.legend import legend_above
from mtl.studies.pictures.probabilities import SharePoint
from mtl.studies.pictures.save import AREAS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NARROW = 5.0
_PANEL = 1.35


def draw_probabilities(figure: "Figure", points: Sequence[SharePoint], width: float) -> None:
    """A panel for each arm, in it an area for each task, and dashed the borders that were planned."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    arms = list(dict.fromkeys(point.arm for point in points))
    tasks = list(dict.fromkeys(point.task for point in points))
    across = min(len(arms), 2 if width < _NARROW else 3)
    down = -(-len(arms) // across)
    labels = task_labels(tasks, letters=1000)
    handles: list[Patch | Line2D] = [
        Patch(facecolor=AREAS[place % len(AREAS)], label=labels[task]) for place, task in enumerate(tasks)
    ]
    if any(point.planned is not None for point in points):
        handles.append(Line2D([], [], color="black", linestyle="--", linewidth=0.8, label="planned"))
    legend = legend_above(figure, handles, width)
    letters = letters_in(width / across - 0.3)
    lines = max(wrapped(arm, letters).count("\n") for arm in arms)
    figure.set_size_inches(width, (_PANEL + 0.14 * lines) * down + 0.3 + legend)
    grid = list(figure.subplots(down, across, squeeze=False, sharey=True).flat)
    for axes in grid[len(arms) :]:
        axes.remove()
    for axes, arm in zip(grid, arms, strict=False):
        _draw_panel(axes, [point for point in points if point.arm == arm], tasks)
        axes.set_title(wrapped(arm, letters))
    figure.supxlabel("update", fontsize=8)
    figure.supylabel("share of examples", fontsize=8)


def _draw_panel(axes: "Axes", points: Sequence[SharePoint], tasks: Sequence[str]) -> None:
    edges = [*dict.fromkeys(point.start for point in points), points[-1].end]
    below = np.zeros(len(edges))
    planned = np.zeros(len(edges))
    for place, task in enumerate(tasks):
        mine = [point for point in points if point.task == task]
        if not mine:
            continue
        above = below + _stepped([point.share for point in mine])
        colour = AREAS[place % len(AREAS)]
        axes.fill_between(edges, below, above, step="post", color=colour, linewidth=0)
        below = above
        known = [point.planned for point in mine if point.planned is not None]
        if len(known) == len(mine):
            planned = planned + _stepped(known)
            if planned[0] < 0.9999:
                axes.step(edges, planned, where="post", color="black", linestyle="--", linewidth=0.8)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, 1)
    axes.locator_params(axis="x", nbins=3)


def _stepped(values: Sequence[float]) -> np.ndarray:
    """A value for each edge: the last one closes the last step."""
    return np.array([*values, values[-1]])
