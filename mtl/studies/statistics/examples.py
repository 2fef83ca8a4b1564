"""How much of a difference between two arms the draw of the examples they were scored on could have made.

Both arms, and all seeds of each, are scored on the same examples. Had other examples been drawn, all these scores would
have moved together: by how much is the covariance of the runs' scores under the draw of examples.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.studies.statistics.seeds import Pairing

Numbers = npt.NDArray[Any]


def example_variance(covariance: Numbers, runs_first: int, pairing: Pairing) -> Numbers:
    """The variance of the difference between two arms' mean scores that the examples cause alike in all seeds (...).

    ``covariance`` (..., R, R) is that of the runs' scores under the draw of examples, the first ``runs_first`` runs
    those of the first arm. For accuracy it comes to the variance of the per-example mean difference over N, less what
    the seeds' disagreement about single examples adds to it: that part is in the variance over seeds already, where
    it is measured (see :func:`mtl.studies.statistics.seeds.seed_components`), and would be counted twice. So only
    pairs of different seeds count, and where runs are paired, run i of either arm is one seed.

    Obuchowski and Rockette 1995, "Hypothesis testing of diagnostic accuracy for multiple readers and multiple tests",
    where seeds are readers and examples are cases; the estimate is not below 0, as in Hillis 2007, "A comparison of
    denominator degrees of freedom methods for multiple observer ROC analysis". ValueError for an arm of one run.
    """
    runs = covariance.shape[-1]
    runs_second = runs - runs_first
    if min(runs_first, runs_second) < 2:
        raise ValueError("what examples cause alike in all seeds needs two runs of each arm")
    signs = np.concatenate([np.full(runs_first, -1.0), np.full(runs_second, 1.0)])
    seeds = np.arange(runs)
    if pairing == "paired":
        seeds[runs_first:] = seeds[:runs_first]
    pairs = seeds[:, None] != seeds[None, :]
    arms = np.repeat([0, 1], [runs_first, runs_second])
    weights = np.zeros((runs, runs))
    for one in (0, 1):
        for other in (0, 1):
            block = pairs & (arms[:, None] == one) & (arms[None, :] == other)
            weights[block] = 1.0 / block.sum()
    weights *= np.outer(signs, signs)
    return np.asarray(np.maximum(0.0, np.einsum("...ij,ij->...", covariance, weights)))
