"""Weights that stay what they are: the plain sum of losses is all ones."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mtl.weighting.protocol import StaticWeighting


class ConstantWeights(StaticWeighting):
    """The same weights (K,) in every update."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights = torch.tensor(list(weights), dtype=torch.float32)

    def weights_at(self, step: int) -> Tensor:
        """See ``StaticWeighting``; a copy, so that no caller can change the weights."""
        return self._weights.clone()
