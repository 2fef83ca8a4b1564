"""The mean of a few values and how well it is known."""

from collections.abc import Sequence

import numpy as np

from mtl.studies.statistics.difference import LEVEL


def interval_of_mean(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The ends of the interval of confidence 1 - ``LEVEL``, by t with n - 1 degrees of freedom; None for one value.

    Never a percentile bootstrap: from three values that misses the truth in a quarter of studies.
    """
    if len(values) < 2:
        return None, None
    from scipy import special

    array = np.asarray(values, dtype=np.float64)
    margin = float(special.stdtrit(len(array) - 1, 1 - LEVEL / 2) * array.std(ddof=1) / np.sqrt(len(array)))
    return float(array.mean()) - margin, float(array.mean()) + margin
