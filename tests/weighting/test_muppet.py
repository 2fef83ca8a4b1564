"""MUPPET's weights: an ignorant head costs exactly 1, whatever the number of classes."""

import math

import pytest
import torch
import torch.nn.functional as F

from mtl import tasks
from mtl.errors import ConfigError
from mtl.tasks.spec import TaskSpec
from mtl.weighting.muppet import muppet_weights


def _classes(count: int) -> TaskSpec:
    labels = tuple(f"class{number}" for number in range(count))
    return tasks.get("glue/rte").model_copy(update={"name": f"made/classes{count}", "labels": labels})


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_uniform_logits_cost_exactly_one(classes: int) -> None:
    [weight] = muppet_weights([_classes(classes)], 1.0)
    loss = F.cross_entropy(torch.zeros(7, classes, dtype=torch.float64), torch.arange(7) % classes)
    assert float(loss) * weight == pytest.approx(1.0, abs=1e-14)


def test_classes_count_and_rows_do_not() -> None:
    specs = [tasks.get(name) for name in ("glue/cola", "glue/mnli", "glue/stsb", "glue/qqp")]
    expected = [1 / math.log(2), 1 / math.log(3), 0.25, 1 / math.log(2)]
    assert muppet_weights(specs, 0.25) == pytest.approx(expected, rel=1e-15)


def test_a_kind_without_outcomes_is_refused() -> None:
    spec = tasks.get("glue/stsb").model_copy(update={"kind": "tagging"})
    with pytest.raises(ConfigError, match="glue/stsb of kind tagging"):
        muppet_weights([spec], 1.0)
