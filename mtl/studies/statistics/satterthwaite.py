"""Degrees of freedom of a sum of variances that are known with different certainty."""

from collections.abc import Sequence

import numpy as np

from mtl.studies.statistics.seeds import Component


def combined(parts: Sequence[Component]) -> Component:
    """The sum of ``parts``, with the degrees of freedom of the chi-square distribution that has its first two moments.

    (sum V)^2 / sum (V^2 / f): Satterthwaite 1946, "An approximate distribution of estimates of variance components";
    for two samples the degrees of freedom of Welch's test. Where all parts are 0, the fewest of them.
    """
    variance = np.sum([part.variance for part in parts], axis=0)
    uncertainty = np.sum([part.variance**2 / part.degrees for part in parts], axis=0)
    fewest = np.min([part.degrees for part in parts], axis=0)
    known = uncertainty > 0
    degrees = np.where(known, variance**2 / np.where(known, uncertainty, 1.0), fewest)
    return Component(np.asarray(variance), np.asarray(degrees))
