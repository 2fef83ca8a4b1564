"""Whether the best of a grid lies at the end of a list of values, so that a better one may lie beyond."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

_FEWEST = 3


def at_edges(grid: Mapping[str, Sequence[Any]], combination: int) -> list[str]:
    """A line for each key whose value in this combination is the least or the greatest of its numbers.

    Combinations are counted from 0, the last key changing fastest. Lists with fewer than three numbers, or with
    something else than numbers, have no inside and are left out.
    """
    lines = []
    for key, values in reversed(list(grid.items())):
        combination, place = divmod(combination, len(values))
        numbers = [_number(value) for value in values]
        if len(set(numbers)) >= _FEWEST and not any(map(math.isnan, numbers)):
            chosen = numbers[place]
            side = {min(numbers): "lower", max(numbers): "higher"}.get(chosen)
            if side is not None:
                listed = ", ".join(str(value) for value in values)
                lines.append(f"its {key}, {values[place]}, is the end of the list {listed}: no {side} one was tried")
    return lines[::-1]


def _number(value: Any) -> float:
    """The number that a value of a grid is or writes; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
