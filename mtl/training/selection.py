"""Which snapshot of a training counts, and when to stop looking for a better one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue


@dataclass
class Selection:
    """Remembers the best evaluation so far: higher is better, a tie keeps the earlier one, NaN is never better.

    ``patience``: evaluations in a row without a better score after which the training ends; None for never.
    """

    patience: int | None
    best_score: float | None = None
    best_step: int = 0
    looks: int = 0
    without_better: int = 0

    def see(self, step: int, score: float) -> bool:
        """Take an evaluation after ``step`` updates; true if it is the best so far."""
        self.looks += 1
        better = score == score and (self.best_score is None or score > self.best_score)
        if better:
            self.best_score, self.best_step, self.without_better = score, step, 0
        else:
            self.without_better += 1
        return better

    @property
    def exhausted(self) -> bool:
        """Whether patience has run out."""
        return self.patience is not None and self.without_better >= self.patience

    def state_dict(self) -> dict[str, JsonValue]:
        """Plain data."""
        names = ("best_score", "best_step", "looks", "without_better")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state_dict` gave."""
        for name, value in state.items():
            setattr(self, name, value)
