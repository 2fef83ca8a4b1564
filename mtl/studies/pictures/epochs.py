"""How often a task saw its own data, against what it gained: for a slide."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from mtl.errors import ConfigError
from mtl.studies.pictures.labels import letters_in, task_labels, wrapped
from mtl.studies.pictures.legend import arm_legend
from mtl.studies.pictures.log_ticks import number_log_axis
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.point_names import name_points
from mtl.studies.pictures.save import GREY, style
from mtl.studies.scored_arms import Arm
from mtl.studies.sequences import sequences
from mtl.studies.study_table import StudyTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NARROW = 5.0


@dataclass(frozen=True)
class EpochsPoint:
    """``epochs``: examples of the task drawn in all training of the arm, over its training examples; mean over runs.

    ``difference`` to the baseline in points; ``distinguishable`` after Holm's correction, so never without a test.
    """

    task: str
    arm: str
    number: int
    baseline: str
    epochs: float
    difference: float
    distinguishable: bool


def epochs(source: Source) -> Drawing:
    """Gains of the source's table against the epochs of the arms."""
    table = source.compared()
    points = epochs_points(table)
    missing = dict.fromkeys(
        f"how often {each.row.name} was drawn in {each.arm}"
        for each in table.comparisons
        if each.row.members is None
        and not any((point.task, point.arm) == (each.row.name, each.arm) for point in points)
    )
    caption = (
        f"Difference to {points[0].baseline} in points, against how often all training of an arm went through the "
        "task's own training examples. A line joins the arms of a task. Filled: distinguishable after Holm's "
        "correction; intervals are in the forest."
    )
    return Drawing(points, caption, tuple(missing))


def epochs_points(table: StudyTable) -> list[EpochsPoint]:
    """A point for each task and arm but the baseline. ConfigError where no run kept its sequence."""
    places = {arm.name: (number, arm) for number, arm in enumerate(table.arms)}
    points = []
    for each in table.comparisons:
        number, arm = places[each.arm]
        passes = None if each.row.members is not None else _epochs(arm, each.row.name)
        if passes is not None:
            points.append(
                EpochsPoint(
                    each.row.name, arm.name, number, table.baseline, passes, each.difference, each.distinguishable
                )
            )
    if not points:
        raise ConfigError("no run tells how often it drew its tasks: sequence.npz, or the rows of train, are missing")
    return points


def _epochs(arm: Arm, task: str) -> float | None:
    found = []
    for run in arm.scoring(task):
        rows, trained = arm.record(run).tasks[task].train_rows, sequences(arm, run, task)
        if not rows or any(sequence is None for sequence in trained):
            return None
        found.append(sum(sequence.examples(task) for sequence in trained if sequence is not None) / rows)
    # A task that is only evaluated has no examples of its own.
    return fmean(found) if any(found) else None


def draw_epochs(figure: "Figure", points: Sequence[EpochsPoint], width: float) -> None:
    """A marker for each arm, a grey line with its name at the right for each task."""
    tasks = list(dict.fromkeys(point.task for point in points))
    labels = task_labels(tasks)
    legend = arm_legend(figure, {(point.number, point.arm) for point in points}, width, markers=True)
    lines = sum(label.count("\n") + 1 for label in labels.values())
    figure.set_size_inches(width, legend + max(2.2 if width < _NARROW else 3.2, 0.16 * lines + 0.7))
    axes = figure.add_subplot()
    axes.margins(x=0.12, y=0.12)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    for task in tasks:
        mine = sorted((point for point in points if point.task == task), key=lambda point: point.epochs)
        axes.plot([p.epochs for p in mine], [p.difference for p in mine], color=GREY, linewidth=0.5, zorder=1)
        for point in mine:
            colour, marker = style(point.number)
            fill = colour if point.distinguishable else "white"
            axes.plot(
                point.epochs, point.difference, marker, color=colour, markersize=4.5, markerfacecolor=fill, zorder=2
            )
    number_log_axis(axes, "epochs over the task's own data")
    axes.set_ylabel(wrapped(f"difference to {points[0].baseline}, points", letters_in(2.0)))
    highest = [max((p for p in points if p.task == task), key=lambda point: point.difference) for task in tasks]
    if not name_points(axes, [(p.epochs, p.difference, labels[p.task], "black") for p in highest]):
        _label_tasks(axes, points, labels)


def _label_tasks(axes: "Axes", points: Sequence[EpochsPoint], labels: dict[str, str]) -> None:
    """The tasks' names at the right, in the order of their last points, none on another, joined to the points."""
    low, high = axes.get_ylim()
    last = {task: max((p for p in points if p.task == task), key=lambda point: point.epochs) for task in labels}
    inches = axes.figure.get_figheight() - 1.0  # type: ignore[union-attr]
    places = spread(
        [(last[task].difference - low) / (high - low) for task in labels],
        [0.15 * (labels[task].count("\n") + 1) / inches for task in labels],
    )
    for (task, point), place in zip(last.items(), places, strict=True):
        axes.annotate(
            labels[task],
            (point.epochs, point.difference),
            xytext=(1.06, place),
            textcoords="axes fraction",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": GREY,
                "linewidth": 0.4,
                "linestyle": ":",
                "shrinkA": 1,
                "shrinkB": 3,
            },
        )
    axes.set_ylim(low, high)


def spread(middles: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Middles as near to ``middles`` as a pass from below and one from above leave them, no two boxes overlapping."""
    order = sorted(range(len(middles)), key=lambda place: middles[place])
    found = list(middles)
    for before, after in itertools.pairwise(order):
        found[after] = max(found[after], found[before] + (heights[before] + heights[after]) / 2)
    top = 1.0
    for place in reversed(order):
        found[place] = min(found[place], top - heights[place] / 2)
        top = found[place] - heights[place] / 2
    return found
