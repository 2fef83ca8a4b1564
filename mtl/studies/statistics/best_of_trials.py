"""What the best of fewer trials would have been."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def expected_best(scores: Sequence[float]) -> npt.NDArray[np.float64]:
    """The expected score (K,) of the best of 1, 2, ... K trials, drawn with replacement from these K.

    Dodge, Gururangan, Card, Schwartz and Smith 2019, "Show your work: improved reporting of experimental results":
    the sum over values v of v (P(V <= v)^k - P(V < v)^k). It is biased downwards, as Tang et al. 2020,
    "Showing your work doesn't always work", say. ValueError for no trial.
    """
    if not scores:
        raise ValueError("the best of no trials is nothing")
    values = np.sort(np.asarray(scores, dtype=np.float64))
    share = np.arange(len(values) + 1) / len(values)
    trials = np.arange(1, len(values) + 1)[:, None]
    return np.asarray(((share[1:] ** trials - share[:-1] ** trials) * values).sum(axis=1))
