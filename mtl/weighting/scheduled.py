"""Weights that move from a start to an end over the training, as a pure function of the step."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from mtl.weighting.protocol import StaticWeighting

Shape = Literal["linear", "cosine", "step"]


def path(shape: Shape, progress: float, step_at: float) -> float:
    """How far from start (0) to end (1) the weights are, where ``progress`` of the training, 0 to 1, is done.

    ``linear`` goes evenly, ``cosine`` along half a cosine, ``step`` jumps once ``step_at`` is reached.
    """
    match shape:
        case "linear":
            return progress
        case "cosine":
            return 0.5 * (1.0 - math.cos(math.pi * progress))
        case "step":
            return float(progress >= step_at)


class ScheduledWeights(StaticWeighting):
    """From ``start`` (K,) in the first of ``total`` updates to ``end`` (K,) in the last, whose progress is 1."""

    def __init__(
        self, start: Sequence[float], end: Sequence[float], total: int, *, shape: Shape, step_at: float
    ) -> None:
        self._start = torch.tensor(list(start), dtype=torch.float64)
        self._end = torch.tensor(list(end), dtype=torch.float64)
        self._total = total
        self._shape: Shape = shape
        self._step_at = step_at

    def weights_at(self, step: int) -> Tensor:
        """See ``StaticWeighting``; where there is only one update, it has the start's weights."""
        progress = step / (self._total - 1) if self._total > 1 else 0.0
        moved = path(self._shape, progress, self._step_at)
        # Both ends are exact in this form.
        return ((1.0 - moved) * self._start + moved * self._end).float()
