"""The mean relative improvement over a baseline, and what has to stand beside it."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

LOWEST_BASELINE = 10.0
"""Below this score a small change is a large ratio: the mean would be that of one task."""

Metrics = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Improvement:
    """``delta_m`` in per cent, None where ``withheld`` says why; differences of tasks in points beside it.

    ``mean_size`` is the mean of the differences' absolute values, ``improved`` the share of tasks above the baseline.
    """

    delta_m: float | None
    withheld: str | None
    mean_points: float
    mean_size: float
    improved: float
    worst_task: str
    worst_points: float


def improvement(scores: Metrics, baseline: Metrics) -> Improvement:
    """Of ``scores`` over ``baseline``: means over seeds, by task and metric, of the same tasks (at least one).

    100 (M - B) / B, averaged over the metrics of a task, then over tasks: Maninis, Radosavovic and Kokkinos 2019,
    "Attentive single-tasking of multiple tasks" (all metrics here are better when higher), where a task of two
    metrics does not count twice. The baseline is the mean of its seeds, never one of them. ValueError for other tasks
    or metrics.
    """
    if not scores or set(scores) != set(baseline) or any(set(scores[task]) != set(baseline[task]) for task in scores):
        raise ValueError(f"delta-m is over the same tasks and metrics, not {dict(scores)} and {dict(baseline)}")
    points = {
        task: statistics.fmean(values[name] - baseline[task][name] for name in values)
        for task, values in scores.items()
    }
    low = [
        f"{task} {name} {baseline[task][name]:.1f}"
        for task, values in scores.items()
        for name in values
        if baseline[task][name] < LOWEST_BASELINE
    ]
    worst = min(points, key=lambda task: points[task])
    return Improvement(
        delta_m=None if low else statistics.fmean(_relative(values, baseline[task]) for task, values in scores.items()),
        withheld=f"the baseline is under {LOWEST_BASELINE:.0f}: {', '.join(low)}" if low else None,
        mean_points=statistics.fmean(points.values()),
        mean_size=statistics.fmean(abs(value) for value in points.values()),
        improved=sum(value > 0 for value in points.values()) / len(points),
        worst_task=worst,
        worst_points=points[worst],
    )


def _relative(values: Mapping[str, float], baseline: Mapping[str, float]) -> float:
    return statistics.fmean(100.0 * (value - baseline[name]) / baseline[name] for name, value in values.items())
