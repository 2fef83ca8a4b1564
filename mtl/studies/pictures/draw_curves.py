"""Learning curves as a figure."""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtl.studies.pictures.curves import CurvePoint
from mtl.studies.pictures.labels import letters_in, short_number, task_labels, wrapped
from mtl.studies.pictures.legend import arm_legend, line_of
from mtl.studies.pictures.save import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NARROW = 5.0
_PANEL = 1.1


def draw_curves(figure: "Figure", points: Sequence[CurvePoint], width: float) -> None:
    """A panel for each quantity of each task; a colour for each arm."""
    from matplotlib.ticker import FuncFormatter

    quantities = list(dict.fromkeys(point.quantity for point in points))
    there = {(point.task, point.quantity) for point in points}
    tasks = dict.fromkeys(point.task for point in points)
    # The quantities of a task side by side.
    panels = [(task, quantity) for task in tasks for quantity in quantities if (task, quantity) in there]
    across = min(len(panels), 2 if width < _NARROW else 3 if len(quantities) % 2 else 4)
    down = -(-len(panels) // across)
    legend = arm_legend(figure, {(point.number, point.arm) for point in points}, width)
    titles = _titles(panels, letters_in(width / across - 0.4), plain=len(quantities) == 1)
    lines = max(title.count("\n") for title in titles)
    figure.set_size_inches(width, (_PANEL + 0.14 * lines) * down + legend + 0.2)
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in grid[len(panels) :]:
        axes.remove()
    for axes, title, (task, quantity) in zip(grid, titles, panels, strict=False):
        _draw_panel(axes, [point for point in points if (point.task, point.quantity) == (task, quantity)])
        axes.set_title(title)
        axes.locator_params(axis="x", nbins=2 if width < _NARROW else 3)
        axes.locator_params(axis="y", nbins=3)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    if len(quantities) == 1:
        figure.supylabel(quantities[0], fontsize=8)
    figure.supxlabel("updates of the arm's own training", fontsize=8)


def _titles(panels: Sequence[tuple[str, str]], letters: int, *, plain: bool) -> list[str]:
    """Of each panel its task, and unless ``plain`` its quantity."""
    labels = task_labels([task for task, _ in panels], letters=1000)
    return [wrapped(labels[task] if plain else f"{labels[task]}: {quantity}", letters) for task, quantity in panels]


def _draw_panel(axes: "Axes", points: Sequence[CurvePoint]) -> None:
    for number in sorted({point.number for point in points}):
        colour = style(number)[0]
        mine = [point for point in points if point.number == number]
        curves = {
            seed: [(point.updates, point.value) for point in mine if point.seed == seed]
            for seed in dict.fromkeys(point.seed for point in mine)
        }
        if len(curves) > 1:
            for curve in curves.values():
                axes.plot(*zip(*curve, strict=True), color=colour, alpha=0.3, linewidth=0.5)
        mean = _mean(list(curves.values()))
        axes.plot(
            [updates for updates, _ in mean],
            [value for _, value in mean],
            color=colour,
            linestyle=line_of(number),
            linewidth=1.2,
        )


def _mean(curves: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """Over the updates that all curves have."""
    common = set.intersection(*({updates for updates, _ in curve} for curve in curves))
    by_updates = [dict(curve) for curve in curves]
    return [(updates, statistics.fmean(curve[updates] for curve in by_updates)) for updates in sorted(common)]
