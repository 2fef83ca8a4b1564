"""Weights from the tasks' training sizes, so that small tasks count as much as large ones, or less."""

import math
from collections.abc import Sequence

from mtl.config.weighting import SizeRule


def size_weights(sizes: Sequence[int], rule: SizeRule, exponent: float) -> list[float]:
    """Weight of each task from its number of training rows n.

    Wang et al. (2019), appendix B.2: ``inverse`` 1/n, ``inverse_max`` max/n, ``inverse_min`` min/n. As in jiant 1:
    ``proportional`` n/max, ``proportional_log`` ln n / ln max, ``power`` (n/max)^a, ``inverse_log`` ln min / ln n,
    ``inverse_power`` (min/n)^a, where a is ``exponent``. Sizes are at least 1; ValueError where a logarithm of 1
    would be divided by or give a weight of 0.
    """
    smallest, largest = min(sizes), max(sizes)
    if smallest < 1 or (smallest < 2 and rule in ("proportional_log", "inverse_log")):
        raise ValueError(f"the size rule {rule} needs larger training sets than one of {smallest} rows")
    return [_weight(size, smallest, largest, rule, exponent) for size in sizes]


def _weight(size: int, smallest: int, largest: int, rule: SizeRule, exponent: float) -> float:
    match rule:
        case "inverse":
            return 1.0 / size
        case "inverse_max":
            return largest / size
        case "inverse_min":
            return smallest / size
        case "proportional":
            return size / largest
        case "proportional_log":
            return math.log(size) / math.log(largest)
        case "power":
            return float((size / largest) ** exponent)
        case "inverse_log":
            return math.log(smallest) / math.log(size)
        case "inverse_power":
            return float((smallest / size) ** exponent)
