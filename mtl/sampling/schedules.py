"""Paths of the sampling exponent over the training, as pure functions of the update's number."""

import math

from mtl.config.sampling import (
    ConstantSchedule,
    CosineSchedule,
    LinearSchedule,
    PalsSchedule,
    ScheduleSettings,
)

_PALS_FALL = 0.8


def exponent_at(schedule: ScheduleSettings, start: float, step: int, total: int) -> float:
    """The exponent of update ``step`` (0-based) of ``total``; linear and cosine reach their end at the last update."""
    progress = step / (total - 1) if total > 1 else 0.0
    match schedule:
        case ConstantSchedule():
            return start
        case LinearSchedule(end=end):
            return start + (end - start) * progress
        case CosineSchedule(end=end):
            return end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * progress))
        case PalsSchedule(epochs=epochs):
            return start * pals_exponent(1 + step * epochs // max(total, 1), epochs)


def pals_exponent(epoch: int, epochs: int) -> float:
    """``1 - 0.8 (e - 1) / (E - 1)`` for e = 1..E (Stickland and Murray 2019, section 3.4); 1 where E is 1."""
    return 1.0 - _PALS_FALL * (epoch - 1) / (epochs - 1) if epochs > 1 else 1.0
