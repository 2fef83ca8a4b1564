"""A sweep of the sampling temperature: mean scores of large and of small tasks, apart."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtl.config.resolve import resolve_stage
from mtl.config.sampling import ProportionalSampling, TemperatureSampling, UniformSampling
from mtl.errors import ConfigError
from mtl.records import StageName
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.save import UNCORRECTED
from mtl.studies.pictures.stage_lines import STAGE_LINES, StageLine
from mtl.studies.run_settings import settings_of
from mtl.studies.scored_arms import Arm
from mtl.studies.statistics.mean import interval_of_mean
from mtl.studies.study_table import StudyTable, counted_tasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL = 10_000
"""Tasks with fewer rows of train are small."""


@dataclass(frozen=True)
class SweepPoint:
    """The mean score of one arm over the tasks of one panel, by seed in ``scores``, and its 95% interval over seeds.

    ``temperature`` is infinite where every task is as likely as any other, None for tasks trained alone.
    """

    panel: str
    tasks: int
    stage: StageName
    arm: str
    temperature: float | None
    mean: float
    low: float | None
    high: float | None
    scores: tuple[float, ...]


def sweep(source: Source) -> Drawing:
    """The sweep of the source's table."""
    return Drawing(
        sweep_points(source.compared()),
        "Mean score against the sampling temperature (1: in proportion to sizes, ∞: every task alike). Ribbons: 95% "
        "intervals of the mean over seeds, uncorrected. Dots: seeds.",
    )


def sweep_points(table: StudyTable) -> list[SweepPoint]:
    """Every arm that samples by temperature (or in proportion, or uniformly), and arms of tasks trained alone.

    ConfigError where fewer than two temperatures are found.
    """
    tasks = counted_tasks(table.arms)
    arms = [(arm, None if arm.stage == "single" else _temperature(arm)) for arm in table.arms]
    arms = [(arm, found) for arm, found in arms if arm.stage == "single" or found is not None]
    if len({found for _, found in arms if found is not None}) < 2:
        raise ConfigError(
            "a sweep needs arms of at least two sampling temperatures, by their config.yaml or their study's study.yaml"
        )
    sizes = _sizes(next(arm for arm, found in arms if found is not None), tasks)
    panels = {
        f"tasks under {SMALL:,} examples": [task for task, size in sizes.items() if size < SMALL],
        f"tasks of {SMALL:,} and more": [task for task, size in sizes.items() if size >= SMALL],
    }
    points = []
    for panel, members in panels.items():
        for arm, temperature in arms:
            scores = _scores(arm, members)
            if scores:
                mean, ends = statistics.fmean(scores), interval_of_mean(scores)
                points.append(
                    SweepPoint(panel, len(members), arm.stage, arm.name, temperature, mean, ends[0], ends[1], scores)
                )
    return points


def _sizes(arm: Arm, tasks: Sequence[str]) -> dict[str, int]:
    """The rows by which the sampler of a joint arm counts its tasks: those trained on, or the official release's."""
    run = arm.runs[0]
    config = settings_of(run)
    official = config is not None and resolve_stage(config, "joint", None).sampling.sizes == "official"
    records = arm.record(run).tasks
    return {
        task: (records[task].train_rows_official if official else records[task].train_rows) or 0
        for task in tasks
        if task in records
    }


def _temperature(arm: Arm) -> float | None:
    """The temperature of the joint stage; None where it was drawn in another way, or its settings are not at hand."""
    config = settings_of(arm.runs[0])
    if config is None:
        return None
    sampling = resolve_stage(config, "joint", None).sampling
    # A cap changes the sizes that the root is taken of.
    if getattr(sampling, "cap", None) is not None:
        return None
    if isinstance(sampling, TemperatureSampling) and sampling.schedule.kind == "constant":
        return sampling.temperature
    if isinstance(sampling, UniformSampling):
        return math.inf
    return 1.0 if isinstance(sampling, ProportionalSampling) else None


def _scores(arm: Arm, tasks: Sequence[str]) -> tuple[float, ...]:
    """By seed, for the seeds that scored all the tasks."""
    records = [arm.record(run).tasks for run in arm.runs]
    whole = [record for record in records if tasks and all(task in record for task in tasks)]
    return tuple(statistics.fmean(record[task].primary for task in tasks) for record in whole)


def draw_sweep(figure: "Figure", points: Sequence[SweepPoint], width: float) -> None:
    """A panel for each kind of task; a line and a ribbon for each stage, seeds as faint dots."""
    panels = list(dict.fromkeys(point.panel for point in points))
    figure.set_size_inches(width, 1.9 * len(panels) + 0.7 if width < 5 else 2.6)
    shape = (len(panels), 1) if width < 5 else (1, len(panels))
    finite = [point.temperature for point in points if point.temperature is not None and point.temperature < math.inf]
    end = 2.5 * max(finite)
    for axes, panel in zip(figure.subplots(*shape, squeeze=False).flat, panels, strict=True):
        mine = [point for point in points if point.panel == panel]
        for stage, line in STAGE_LINES.items():
            _draw_stage(axes, [point for point in mine if point.stage == stage], line, end)
        axes.set_title(f"{panel} ({mine[0].tasks})")
        axes.set_xscale("log")
        ticks = sorted({_place(point.temperature, end) for point in points if point.temperature is not None})
        axes.set_xticks(ticks, ["∞" if tick == end else f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylabel("mean score")
    figure.supxlabel(f"sampling temperature\n{UNCORRECTED}", fontsize=8)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2 if width < 5 else 3, frameon=False)


def _draw_stage(axes: "Axes", points: Sequence[SweepPoint], stage: StageLine, end: float) -> None:
    if not points:
        return
    line, name, colour = stage.dashes, stage.name, stage.colour
    if points[0].temperature is None:
        for point in points:
            axes.axhline(point.mean, linestyle=line, color=colour, label=name if point is points[0] else None)
            if point.low is not None and point.high is not None:
                axes.axhspan(point.low, point.high, color=colour, alpha=0.15, linewidth=0)
            # At the frame: no temperature is theirs.
            _draw_seeds(axes, 0.01, point, colour, transform=axes.get_yaxis_transform())
        return
    points = sorted(points, key=lambda point: _place(point.temperature, end))
    places = [_place(point.temperature, end) for point in points]
    axes.plot(places, [point.mean for point in points], linestyle=line, color=colour, label=name)
    known = [(place, point.low, point.high) for place, point in zip(places, points, strict=True)]
    ribbon = [(place, low, high) for place, low, high in known if low is not None and high is not None]
    if ribbon:
        middles, lows, highs = zip(*ribbon, strict=True)
        axes.fill_between(middles, lows, highs, color=colour, alpha=0.15, linewidth=0)
    for place, point in zip(places, points, strict=True):
        _draw_seeds(axes, place, point, colour)


def _draw_seeds(axes: "Axes", place: float, point: SweepPoint, colour: str, **where: Any) -> None:
    places = [place] * len(point.scores)
    axes.plot(places, point.scores, "o", color=colour, alpha=0.35, markersize=3, markeredgewidth=0, **where)


def _place(temperature: float | None, end: float) -> float:
    """Where a temperature stands on the axis; infinity has a place of its own at the right."""
    return end if temperature is None or temperature == math.inf else temperature
