"""Quick single draws from one named random stream, a fixed function of the stream alone."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_BLOCK = 4096


class Draws:
    """Draws one value at a time, fetching uniforms in blocks: a call of numpy for each would take most of the time."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._block: list[float] = []

    def unit(self) -> float:
        """A uniform number in [0, 1)."""
        if not self._block:
            self._block = self._generator.random(_BLOCK).tolist()
        return self._block.pop()

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.unit() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each equally likely."""
        return options[int(self.unit() * len(options))]

    def weighted(self, table: Sequence[tuple[T, float]]) -> T:
        """One of the table's values, as likely as its weight's share in the sum of weights."""
        left = self.unit() * sum([weight for _, weight in table])
        for value, weight in table:
            left -= weight
            if left < 0:
                return value
        return table[-1][0]
