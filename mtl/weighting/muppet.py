"""Weights that make an ignorant head's loss 1 in every classification task, however many classes it has."""

import math
from collections.abc import Sequence

from mtl.errors import ConfigError
from mtl.tasks.spec import TaskSpec


def muppet_weights(specs: Sequence[TaskSpec], regression_weight: float) -> list[float]:
    """Aghajanyan et al. (2021), section 3.3: 1 / ln n, n the number of outcomes that the task's loss predicts over.

    Cross-entropy under uniform predictions is ln n, so weighted it is 1. n is a number of classes, not of rows. The
    paper has no rule for regression, where nothing can be counted: it gets ``regression_weight``. ConfigError for a
    task of another kind.
    """
    return [_weight(spec, regression_weight) for spec in specs]


def _weight(spec: TaskSpec, regression_weight: float) -> float:
    if spec.kind == "classification":
        return 1.0 / math.log(len(spec.labels))
    if spec.kind == "regression":
        return regression_weight
    raise ConfigError(
        f"weighting.kind muppet counts outcomes, which task {spec.name} of kind {spec.kind} does not have; "
        "choose another weighting, or leave the task out"
    )
