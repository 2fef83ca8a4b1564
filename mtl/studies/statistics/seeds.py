"""How much of a difference between two arms their seeds could have made.

Arrays may have leading axes, over which everything is done at once; runs are the last one.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Pairing = Literal["paired", "Welch"]


@dataclass(frozen=True)
class Component:
    """One part of the variance of an estimate, and the degrees of freedom with which that part is known."""

    variance: Numbers
    degrees: Numbers


def seed_components(first: Numbers, second: Numbers, pairing: Pairing) -> tuple[Component, ...]:
    """The variance of the mean of ``second`` less that of ``first`` over other seeds; scores (..., runs).

    Welch: the runs of both arms are independent, and each arm has a variance of its own (Welch 1947, "The
    generalization of 'Student's' problem when several different population variances are involved"). Paired: run i of
    one arm belongs to run i of the other, so that their differences are one sample. At least two runs a side:
    ValueError otherwise, since one run tells nothing of another.
    """
    if min(first.shape[-1], second.shape[-1]) < 2:
        raise ValueError("the variance over seeds needs two runs of each arm")
    if pairing == "paired":
        return (_of_mean(second - first),)
    return _of_mean(first), _of_mean(second)


def _of_mean(values: Numbers) -> Component:
    runs = values.shape[-1]
    variance = np.asarray(values.var(axis=-1, ddof=1) / runs)
    return Component(variance, np.full_like(variance, runs - 1))
