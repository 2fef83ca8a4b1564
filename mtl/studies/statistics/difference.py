"""The difference between two arms with its 95% interval, from what seeds and what examples could have made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.studies.statistics.examples import example_variance
from mtl.studies.statistics.satterthwaite import combined
from mtl.studies.statistics.seeds import Component, Pairing, seed_components

Numbers = npt.NDArray[Any]
LEVEL = 0.05


@dataclass(frozen=True)
class Estimate:
    """Differences, the second arm's mean score less the first's, each (...): with standard errors, degrees of freedom,
    two-sided p-values and the ends of the intervals of confidence 1 - ``LEVEL``.

    ``p_value`` is NaN, and there is no interval, where neither seeds nor examples vary: nothing can be told.
    """

    difference: Numbers
    standard_error: Numbers
    degrees: Numbers
    p_value: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True)
class ExampleDraw:
    """The covariance (..., R, R) of runs' scores under the draw of ``examples`` examples; of a mean over several
    tasks there is one draw each, whose covariances are divided by the square of the number of tasks.
    """

    covariance: Numbers
    examples: int


def difference(first: Numbers, second: Numbers, draws: Sequence[ExampleDraw], pairing: Pairing) -> Estimate:
    """Mean of ``second`` (..., S) less mean of ``first`` (..., F), tested against 0.

    The runs of ``draws`` are those of ``first``, then those of ``second``. The variances of the seeds (t, n - 1
    degrees of freedom) and of the examples (N - 1) are summed, with Satterthwaite's degrees of freedom.
    """
    from scipy import special

    parts = list(seed_components(first, second, pairing))
    for draw in draws:
        variance = example_variance(draw.covariance, first.shape[-1], pairing)
        parts.append(Component(variance, np.full_like(variance, draw.examples - 1)))
    total = combined(parts)
    found = np.asarray(second.mean(axis=-1) - first.mean(axis=-1))
    error = np.sqrt(total.variance)
    known = error > 0
    statistic = np.abs(found) / np.where(known, error, 1.0)
    margin = np.where(known, special.stdtrit(total.degrees, 1 - LEVEL / 2) * error, np.nan)
    p_value = np.where(known, 2 * special.stdtr(total.degrees, -statistic), np.nan)
    return Estimate(found, error, total.degrees, p_value, found - margin, found + margin)
