"""Data-fraction curves as a figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtl.studies.pictures.fraction import FractionPoint, saved
from mtl.studies.pictures.labels import letters_in, task_labels, wrapped
from mtl.studies.pictures.legend import LINE, legend_columns
from mtl.studies.pictures.save import COLOURS, UNCORRECTED
from mtl.studies.pictures.stage_lines import STAGE_LINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NARROW = 5.0


def draw_fraction(figure: "Figure", points: Sequence[FractionPoint], width: float) -> None:
    """A panel for each task, in it a line with its ribbon and its seeds for each way of training."""
    targets = list(dict.fromkeys(point.target for point in points))
    lines = list(dict.fromkeys(point.line for point in points))
    across = 1 if width < _NARROW else min(len(targets), 2)
    down = -(-len(targets) // across)
    columns = legend_columns(lines, width)
    figure.set_size_inches(width, 2.0 * down + 0.4 + LINE * -(-len(lines) // columns))
    colours = _colours(points)
    panels = figure.subplots(down, across, squeeze=False).flat
    labels = task_labels(targets, letters=letters_in(width / across - 0.5))
    for axes in panels:
        axes.set_visible(False)
    for axes, target in zip(figure.axes, targets, strict=False):
        axes.set_visible(True)
        mine = [point for point in points if point.target == target]
        for line in lines:
            _draw_line(axes, [point for point in mine if point.line == line], colours[line])
        told = _draw_arrow(axes, mine)
        axes.set_title(f"{labels[target]}\n{told}" if told else labels[target])
        axes.set_xscale("log")
        counts = sorted({point.train_rows for point in mine})
        axes.set_xticks(_apart(counts), [f"{count:,}" for count in _apart(counts)])
        axes.minorticks_off()
        axes.set_ylabel("score")
    figure.supxlabel(f"training examples of the task\n{UNCORRECTED}", fontsize=8)
    found = {
        text: handle for axes in figure.axes for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        found.values(),
        [wrapped(line, letters_in(width / columns - 0.5)) for line in found],
        loc="outside upper center",
        ncols=columns,
        frameon=False,
    )


def _colours(points: Sequence[FractionPoint]) -> dict[str, str]:
    """The stage's colour for its first line, one of those left for another."""
    lines = {point.line: point.stage for point in points}
    firsts = {stage: line for line, stage in reversed(lines.items())}
    left = iter(colour for colour in COLOURS * 9 if colour not in {line.colour for line in STAGE_LINES.values()})
    return {line: STAGE_LINES[stage].colour if firsts[stage] == line else next(left) for line, stage in lines.items()}


def _apart(counts: Sequence[int]) -> list[int]:
    """The most of the counts, from the largest on, whose numbers do not lie on each other on the axis."""
    kept: list[int] = []
    least = (counts[-1] / counts[0]) ** 0.19
    for count in reversed(counts):
        if not kept or kept[-1] / count >= least:
            kept.append(count)
    return kept[::-1]


def _draw_line(axes: "Axes", points: Sequence[FractionPoint], colour: str) -> None:
    if not points:
        return
    rows = [point.train_rows for point in points]
    axes.plot(
        rows, [point.mean for point in points], STAGE_LINES[points[0].stage].dashes, color=colour, label=points[0].line
    )
    ribbon = [(point.train_rows, point.low, point.high) for point in points if point.low is not None]
    if ribbon:
        places, lows, highs = zip(*ribbon, strict=True)
        axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    for point in points:
        axes.plot(
            [point.train_rows] * len(point.scores),
            point.scores,
            "o",
            color=colour,
            alpha=0.35,
            markersize=3,
            markeredgewidth=0,
        )


def _draw_arrow(axes: "Axes", points: Sequence[FractionPoint]) -> str:
    """The arrow; what it says."""
    point = saved(points)
    if point is None or point.single_rows is None:
        return ""
    look = {"arrowstyle": "->", "color": "black", "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (point.single_rows, point.mean), xytext=(point.train_rows, point.mean), arrowprops=look)
    return f"(arrow: {point.single_rows - point.train_rows:,.0f} examples saved)"
