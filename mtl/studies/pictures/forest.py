"""Differences to the baseline, task by task, each with its interval: the forest plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtl.errors import ConfigError
from mtl.studies.pictures.labels import letters_in, wrapped
from mtl.studies.pictures.legend import legend_above
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.save import BAND, GREY, style
from mtl.studies.study_table import StudyTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ForestPoint:
    """One arm against the baseline by one score, in points; ``low`` to ``high`` is the uncorrected 95% interval.

    ``train_rows`` is None for a suite. ``number`` is the arm's place among all, which gives it the same colour in all
    pictures. ``detectable`` is at the level of Holm's first step, ``distinguishable`` after Holm's correction.
    """

    row: str
    train_rows: int | None
    arm: str
    number: int
    baseline: str
    difference: float
    low: float
    high: float
    detectable: float
    distinguishable: bool


def forest(source: Source) -> Drawing:
    """The forest of the source's table."""
    table = source.compared()
    untested = dict.fromkeys(each.untested for each in table.comparisons if each.untested is not None)
    return Drawing(forest_points(table), forest_caption(table), tuple(f"no test: {reason}" for reason in untested))


def forest_caption(table: StudyTable) -> str:
    """What the forest of ``table`` shows."""
    alone = "" if table.primary is None else f", {table.primary.arm} by {table.primary.score} tested alone"
    return (
        f"Difference to {table.baseline} in points, tasks by their number of training examples (n). Bars: 95% "
        "intervals from the variance over seeds and over examples, not corrected for the number of comparisons. "
        f"Filled: distinguishable after Holm's correction{alone}. Grey: smaller differences than 80% of such studies "
        "would find."
    )


def forest_points(table: StudyTable) -> list[ForestPoint]:
    """The tested comparisons of ``table``, tasks by training size from the smallest on, suites last.

    ConfigError where there is none.
    """
    sizes = {
        name: record.train_rows or 0
        for arm in table.arms
        for run in arm.runs
        for name, record in arm.record(run).tasks.items()
    }
    numbers = {arm.name: number for number, arm in enumerate(table.arms)}
    points = [
        ForestPoint(
            row=each.row.name if each.row.members is None else f"{each.row.name} (mean of {len(each.row.members)})",
            train_rows=sizes.get(each.row.name) if each.row.members is None else None,
            arm=each.arm,
            number=numbers[each.arm],
            baseline=each.baseline,
            difference=each.difference,
            low=each.estimate.low,
            high=each.estimate.high,
            detectable=each.detectable,
            distinguishable=each.distinguishable,
        )
        for each in table.comparisons
        if each.estimate is not None and each.detectable is not None
    ]
    if not points:
        reasons = ", ".join(dict.fromkeys(each.untested or "" for each in table.comparisons))
        raise ConfigError(f"nothing could be tested, so there is no forest to draw: {reasons}")
    return sorted(points, key=lambda point: (point.train_rows is None, point.train_rows or 0))


def draw_forest(figure: "Figure", points: Sequence[ForestPoint], width: float) -> None:
    """A row for each score, a colour and a marker for each arm, filled where it is distinguishable."""
    rows = list(dict.fromkeys(point.row for point in points))
    arms = sorted({(point.number, point.arm) for point in points})
    step = 0.8 / len(arms)
    legend = _explain(figure, arms, width)
    labels = {row: _label(points, row, letters_in(0.4 * width)) for row in rows}
    lines = max(label.count("\n") + 1 for label in labels.values())
    xlabel = wrapped(f"difference to {points[0].baseline}, points", letters_in(0.9 * width))
    row_height = max(0.13 * lines + 0.04, 0.15 * len(arms))
    figure.set_size_inches(width, 0.6 + legend + 0.14 * xlabel.count("\n") + len(rows) * row_height)
    axes = figure.add_subplot()
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    for point in points:
        place = arms.index((point.number, point.arm))
        _draw_point(axes, point, rows.index(point.row) + (place - (len(arms) - 1) / 2) * step, step)
    axes.set_yticks(range(len(rows)), list(labels.values()))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    low, high = shown_range(points)
    axes.set_xlim(low, high)
    wider = any(-point.detectable < low or point.detectable > high for point in points)
    more = "\n(grey at the frame goes on)" if wider else ""
    figure.supxlabel(f"{xlabel}\n(95% intervals, uncorrected){more}", fontsize=8)


def shown_range(points: Sequence[ForestPoint]) -> tuple[float, float]:
    """The ends of the axis: all intervals, and of the grey bands as much as lets the intervals be seen."""
    farthest = max(max(abs(point.low), abs(point.high)) for point in points)
    band = min(max(point.detectable for point in points), 1.5 * farthest)
    low, high = min(*(point.low for point in points), -band), max(*(point.high for point in points), band)
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _draw_point(axes: "Axes", point: ForestPoint, height: float, step: float) -> None:
    colour, marker = style(point.number)
    axes.barh(height, 2 * point.detectable, left=-point.detectable, height=0.9 * step, color=BAND, zorder=0)
    axes.plot([point.low, point.high], [height, height], color=colour, zorder=2)
    axes.plot(
        point.difference,
        height,
        marker=marker,
        markersize=4.5,
        color=colour,
        markerfacecolor=colour if point.distinguishable else "white",
        zorder=3,
    )


def _label(points: Sequence[ForestPoint], row: str, letters: int) -> str:
    rows = next(point.train_rows for point in points if point.row == row)
    return wrapped(row, letters) + (f"\nn = {rows:,}" if rows else "")


def _explain(figure: "Figure", arms: Sequence[tuple[int, str]], width: float) -> float:
    """The legend; the inches it takes."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = []
    for number, arm in arms:
        colour, marker = style(number)
        handles.append(Line2D([], [], color=colour, marker=marker, markersize=4.5, label=arm))
    hollow = Line2D([], [], color=GREY, marker="o", markersize=4.5, markerfacecolor="white", linestyle="none")
    hollow.set_label("not distinguishable (Holm)")
    handles += [hollow, Patch(color=BAND, label="minimum detectable difference")]
    return legend_above(figure, handles, width)
