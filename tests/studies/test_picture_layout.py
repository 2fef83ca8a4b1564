"""No word of a picture is cut off or lies on another, whatever the names and the number of arms and tasks."""

import re
from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import Any

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from mtl.studies.pictures.cost import CostPoint
from mtl.studies.pictures.curves import CurvePoint
from mtl.studies.pictures.epochs import EpochsPoint, spread
from mtl.studies.pictures.forest import ForestPoint
from mtl.studies.pictures.fraction import FractionPoint
from mtl.studies.pictures.labels import short_number, task_labels, wrapped
from mtl.studies.pictures.probabilities import SharePoint
from mtl.studies.pictures.registry import REGISTRY
from mtl.studies.pictures.save import SETTINGS, WIDTHS, picture_csv, picture_svg
from mtl.studies.pictures.sweep import SweepPoint
from mtl.studies.pictures.transfer import TransferCell

TASKS = [f"{'glue' if place % 2 else 'own'}/a_task_with_a_long_name_{place}_premise" for place in range(9)]
ARMS = [f"sampling=temperature,temperature={place},cap=10000" for place in range(6)]
CELLS = [(number, arm, task) for number, arm in enumerate(ARMS) for task in TASKS]
STAGES = ("single", "joint", "finetune")

UGLY: dict[str, Sequence[Any]] = {
    "forest": [
        ForestPoint(task, 10 ** (TASKS.index(task) + 1), arm, number, ARMS[0], -30.0 - number, -60.0, 3.0, 90.0, False)
        for number, arm, task in CELLS
    ],
    "cost": [
        CostPoint(arm, number, "own", 3e11 + 1e9 * number, 1e6, -2.0 - number, None, None, 1, number == 0)
        for number, arm in enumerate(ARMS)
    ],
    "sweep": [
        SweepPoint(panel, 3, stage, stage, None if stage == "single" else warm, -3.0, -5.0, 4.0, (-3.0, 1.0))  # type: ignore[arg-type]
        for panel in ("tasks under 10,000 examples", "tasks of 10,000 and more")
        for stage in STAGES
        for warm in (1.0, 1.25, 2.0, 5.0, 10.0, float("inf"))
    ],
    "transfer": [
        TransferCell(stage, one, other, 50.0, 40.0, -10.0, None, None, None, other == TASKS[2], None, "one run")  # type: ignore[arg-type]
        for stage in STAGES[1:]
        for one, other in permutations(TASKS, 2)
    ],
    "fraction": [
        FractionPoint(task, f"{stage} with {TASKS[8]}", stage, stage, rows, rows / 5.0, None, None, (1.0,), 3000.0)  # type: ignore[arg-type]
        for task in TASKS[:3]
        for stage in STAGES
        for rows in (50, 60, 100, 1000, 123456)
    ],
    "curves": [
        CurvePoint(task, quantity, arm, number, 1, updates, -1.0 / updates)
        for number, arm, task in CELLS
        for quantity in ("loss", "dev score")
        for updates in (1000, 100000, 123456)
    ],
    "probabilities": [
        SharePoint(arm, number, task, start, start + 10000, 1 / 9, 0.0, 0.2, 1 / 9)
        for number, arm, task in CELLS
        for start in (0, 10000)
    ],
    "epochs": [
        EpochsPoint(task, arm, number, ARMS[0], 0.1 + number, -5.0 + TASKS.index(task) / 50, False)
        for number, arm, task in CELLS
    ],
}


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("width", WIDTHS.values())
def test_nothing_is_cut_off_and_no_numbers_of_an_axis_overlap(name: str, width: float) -> None:
    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, width), layout="constrained")
        REGISTRY[name].draw(figure, UGLY[name], width)
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox()
        assert figure.get_figwidth() == width
        assert drawn.x0 >= -0.01
        assert drawn.y0 >= -0.01
        assert drawn.x1 <= width + 0.01
        assert drawn.y1 <= figure.get_figheight() + 0.01
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                labels = [label for tick in ticks for label in (tick.label1, tick.label2)]
                boxes = [each.get_window_extent() for each in labels if each.get_visible() and each.get_text()]
                assert not any(one.overlaps(other) for one, other in pairwise(boxes))
            assert axes.bbox.height > 40 * figure.dpi / 100 or axes.get_label() == "<colorbar>"


@pytest.mark.parametrize("name", ["forest", "transfer", "probabilities"])
def test_the_same_numbers_give_the_same_bytes(name: str) -> None:
    first, second = (picture_svg(UGLY[name], REGISTRY[name].draw, 3.3) for _ in range(2))
    assert first == second
    assert re.search("<dc:date>", first) is None
    assert picture_csv(UGLY[name]).count("\n") == len(UGLY[name]) + 1


def test_long_names_are_broken_after_signs() -> None:
    assert wrapped("a_very_long_name", 7) == "a_very_\nlong_\nname"
    assert wrapped("abcdefghij", 4) == "abcd\nefgh\nij"
    assert wrapped("short", 9) == "short"
    assert [short_number(value) for value in (0, 2500, 25000, 2e6)] == ["0", "2500", "25k", "2,000k"]
    assert task_labels(["glue/rte", "glue/cola"]) == {"glue/rte": "rte", "glue/cola": "cola"}
    assert task_labels(["glue/rte", "own/rte"]) == {"glue/rte": "glue/rte", "own/rte": "own/rte"}


def test_boxes_are_spread_in_their_order() -> None:
    assert spread([0.5, 0.5, 0.1], [0.2, 0.2, 0.2]) == pytest.approx([0.5, 0.7, 0.1])
    assert spread([0.95, 0.9], [0.2, 0.2]) == pytest.approx([0.9, 0.7])
