"""What a score cost: training operations against the suite's score, an arm at each point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtl.errors import ConfigError
from mtl.studies.pictures.legend import arm_legend
from mtl.studies.pictures.log_ticks import number_log_axis
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.point_names import name_points
from mtl.studies.pictures.save import GREY, UNCORRECTED, style
from mtl.studies.statistics.mean import interval_of_mean
from mtl.studies.study_table import StudyTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CostPoint:
    """An arm's mean score and its cost; ``low`` to ``high`` is the 95% interval of the mean over seeds alone.

    Both ends are None for one run. ``number`` is the arm's place among all, which gives it the same colour in all
    pictures. ``efficient``: no arm scores as much for less.
    """

    arm: str
    number: int
    suite: str
    flops: float
    tokens: float
    score: float
    low: float | None
    high: float | None
    runs: int
    efficient: bool


def cost(source: Source) -> Drawing:
    """Score against cost, of the source's table."""
    points = cost_points(source.compared())
    return Drawing(
        points,
        f"Mean score of {points[0].suite} against the operations of all training that led to it. Bars: 95% intervals "
        "of the mean over seeds, uncorrected. Grey line: arms that no other arm beats at both.",
        tuple(f"{point.arm} has one run, so no interval" for point in points if point.runs < 2),
    )


def cost_points(table: StudyTable) -> list[CostPoint]:
    """The arms by the first suite that has a mean, the primary comparison's where that is one. ConfigError without."""
    suites = [row for row in table.rows if row.members is not None]
    if table.primary is not None:
        suites = [row for row in suites if row.name == table.primary.score] or suites
    if not suites:
        raise ConfigError("no suite has a mean over the same tasks in two arms, so there is no score to hold costs to")
    row = suites[0]
    scored = [
        (number, table.costs[arm.name], cell)
        for number, (arm, cell) in enumerate(zip(table.arms, row.cells, strict=True))
        if cell is not None
    ]
    points = []
    for number, cost, cell in scored:
        low, high = interval_of_mean(cell.values)
        beaten = any(
            other.flops <= cost.flops and each.mean >= cell.mean and (other.flops, each.mean) != (cost.flops, cell.mean)
            for _, other, each in scored
        )
        points.append(
            CostPoint(
                table.arms[number].name,
                number,
                row.name,
                cost.flops,
                cost.tokens,
                cell.mean,
                low,
                high,
                len(cell.values),
                not beaten,
            )
        )
    return sorted(points, key=lambda point: point.flops)


def draw_cost(figure: "Figure", points: Sequence[CostPoint], width: float) -> None:
    """A point for each arm, its name beside it where there is room; a line joins those that none beats at both."""
    figure.set_size_inches(width, 0.72 * width if width < 5 else 0.5 * width)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.margins(x=0.25)
    best = [point for point in points if point.efficient]
    axes.step([point.flops for point in best], [point.score for point in best], where="post", color=GREY, linewidth=0.8)
    for point in points:
        colour, marker = style(point.number)
        if point.low is not None and point.high is not None:
            axes.plot([point.flops] * 2, [point.low, point.high], color=colour)
        axes.plot(point.flops, point.score, marker=marker, markersize=5, color=colour, linestyle="none")
    number_log_axis(axes, "training FLOPs, all stages", UNCORRECTED)
    axes.set_ylabel(f"{points[0].suite}, mean score")
    if not name_points(axes, [(point.flops, point.score, point.arm, style(point.number)[0]) for point in points]):
        legend = arm_legend(figure, {(point.number, point.arm) for point in points}, width, markers=True)
        figure.set_size_inches(width, figure.get_figheight() + legend)
