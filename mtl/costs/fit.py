"""Fitting a machine's times and memory to what was measured."""

from collections.abc import Mapping, Sequence

import numpy as np

from mtl.costs.machine import CaseMeasure, LinearFit, MachineKey, MachineProfile
from mtl.costs.work import WORK_NAMES

_OF_TRAINING = WORK_NAMES
# Of measurements that a fit needs to be more than a guess.
_FEWEST = 5
# No dropout is drawn in evaluation.
_OF_EVALUATION = tuple(name for name in WORK_NAMES if name not in ("masks", "masked_layers"))


def fit_nonnegative(
    names: Sequence[str],
    rows: Sequence[Mapping[str, float]],
    measured: Sequence[float],
    *,
    known: Sequence[float] | None = None,
) -> LinearFit:
    """Non-negative least squares of relative errors: sum of ((prediction - measured) / measured)^2 at its least.

    ``known`` is a part of each prediction that is not fitted. Relative, so that a small training counts as much as a
    large one. Values must be positive.
    """
    from scipy.optimize import nnls

    values = np.asarray(measured, dtype=np.float64)
    rest = values if known is None else values - np.asarray(known, dtype=np.float64)
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in rows], dtype=np.float64) / values[:, None]
    # Quantities lie many powers of ten apart: scaled to one size, so that none is lost to rounding.
    scales = np.abs(matrix).max(axis=0)
    scales[scales == 0.0] = 1.0
    found, _ = nnls(matrix / scales, rest / values)
    left = (matrix / scales) @ found - rest / values
    return LinearFit(
        coefficients={name: float(each) for name, each in zip(names, found / scales, strict=True)},
        residuals=tuple(float(each) for each in left),
    )


def fit_machine(
    key: MachineKey, cases: Sequence[CaseMeasure], *, precision: str, threads: int, device: str
) -> MachineProfile:
    """The profile that explains the measurements best."""
    fixed = [case.fixed_bytes for case in cases]
    # The peak of a process on a CPU is that of its training unless evaluation, which comes after it, goes beyond.
    beyond = [case for case in cases if device != "cpu" or case.evaluation_bytes > case.training_bytes]
    passing = beyond if len(beyond) >= _FEWEST else cases
    return MachineProfile(
        key=key,
        precision=precision,
        threads=threads,
        device=device,
        training=fit_nonnegative(
            _OF_TRAINING, [case.training for case in cases], [case.training_seconds for case in cases]
        ),
        evaluation=fit_nonnegative(
            _OF_EVALUATION, [case.evaluation for case in cases], [case.evaluation_seconds for case in cases]
        ),
        training_memory=fit_nonnegative(
            ("base", "elements", "scores", "sizes"),
            [case.training_memory for case in cases],
            [case.training_bytes for case in cases],
            known=fixed,
        ),
        evaluation_memory=fit_nonnegative(
            ("base", "widest", "scores", "sizes"),
            [case.evaluation_memory for case in passing],
            [case.evaluation_bytes for case in passing],
            known=[case.fixed_bytes for case in passing],
        ),
        cases=tuple(cases),
    )
