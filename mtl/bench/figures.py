"""From what the clocks read to the figures that are reported: rates, medians, utilisation and loss curves."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

from mtl.bench.records import Record, TrainingMeasure

TENTHS = 10


class InTurn(Record):
    """Two things measured in turn: how many times as fast the first was, turn by turn, and the median of it."""

    ratio: float
    ratios: tuple[float, ...]


def utilisation(flops: float, seconds: float, peak: float) -> float:
    """Model FLOPs utilisation: useful operations a second over those of a large matrix product."""
    return flops / seconds / peak


def tokens_per_second(measure: TrainingMeasure) -> float:
    """Real tokens a second; padding is not counted."""
    return measure.tokens / measure.seconds


def in_turn(first: Sequence[float], second: Sequence[float]) -> InTurn:
    """The comparison of the rates of both, one entry a turn."""
    ratios = tuple(one / other for one, other in zip(first, second, strict=True))
    return InTurn(ratio=statistics.median(ratios), ratios=ratios)


def by_tenths(values: Sequence[float]) -> list[float]:
    """Means of ten parts in order, as equal as can be; of fewer values each is a part."""
    parts = min(TENTHS, len(values))
    edges = [round(part * len(values) / parts) for part in range(parts + 1)]
    return [statistics.fmean(values[begin:end]) for begin, end in pairwise(edges)]


def mean_curve(measures: Sequence[TrainingMeasure]) -> list[float]:
    """The loss by tenths, averaged over trainings of one length."""
    curves = [by_tenths(measure.losses) for measure in measures]
    return [statistics.fmean(values) for values in zip(*curves, strict=True)]
