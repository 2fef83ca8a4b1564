"""How often each task is drawn, from the tasks' training sizes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def power_probabilities(sizes: Sequence[float] | FloatArray, exponent: float, cap: float | None = None) -> FloatArray:
    """Shares (K,) in proportion to ``min(size, cap) ** exponent``: the cap first, then the power; they sum to 1.

    Raffel et al. (2020), section 3.5.2, for cap and temperature (exponent 1/T); Clark et al. (2019) use 0.75, Stickland
    and Murray (2019) 0.5. Exponent 0 gives every task the same share. Sizes must be positive.
    """
    array = np.asarray(sizes, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ValueError(f"sizes must be positive numbers, one a task; got {sizes!r}")
    capped = array if cap is None else np.minimum(array, cap)
    # Dividing by the largest first keeps the powers within range for any exponent.
    powers = (capped / capped.max()) ** exponent
    return np.asarray(powers / powers.sum(), dtype=np.float64)


def task_probabilities(
    sizes: Sequence[float] | FloatArray, temperature: float = 1.0, cap: float | None = None
) -> FloatArray:
    """Shares (K,) in proportion to ``min(size, cap) ** (1 / temperature)``; temperature 1 is proportional."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    return power_probabilities(sizes, 1.0 / temperature, cap)
