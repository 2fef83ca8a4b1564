"""What a comparison could have found: the power of a t-test and the smallest difference it finds most of the time."""

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
POWER = 0.8


def power(difference: Numbers, standard_error: Numbers, degrees: Numbers, level: float) -> Numbers:
    """The chance that a two-sided t-test at ``level`` calls a true ``difference`` one, with the right sign.

    From the noncentral t distribution: Cohen 1988, "Statistical power analysis for the behavioral sciences", chapter 2.
    """
    from scipy import special

    critical = special.stdtrit(degrees, 1 - level / 2)
    return np.asarray(1 - special.nctdtr(degrees, np.abs(difference) / standard_error, critical))


def minimum_detectable_difference(standard_error: Numbers, degrees: Numbers, level: float) -> Numbers:
    """The true difference that a two-sided t-test at ``level`` would find with a chance of 80%.

    It exceeds every difference that such a test did not find, so that "not distinguishable" is never read as "equal".
    """
    from scipy import special

    critical = special.stdtrit(degrees, 1 - level / 2)
    return np.asarray(special.nctdtrinc(degrees, 1 - POWER, critical) * standard_error)
