"""From settings to a weighting: by name, in the order of the tasks, with errors that say how to mend them."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from mtl import tasks
from mtl.config.weighting import (
    ConstantWeighting,
    MuppetWeighting,
    ScheduledWeighting,
    SizeWeighting,
    WeightingSettings,
)
from mtl.errors import ConfigError, DataError
from mtl.weighting.protocol import StaticWeighting, Weighting
from mtl.weighting.registry import WEIGHTINGS, make_weighting, register_weighting

SPECS = [tasks.get(name) for name in ("glue/rte", "glue/mnli", "glue/stsb")]
SIZES = {"glue/mnli": 400, "glue/rte": 100, "glue/stsb": 200}
PRESENT = np.array([True, False, True])


def _weights(settings: WeightingSettings, step: int = 0) -> list[float]:
    weighting = make_weighting(settings, SPECS, SIZES, 5)
    weights = weighting.weights(step, PRESENT, None, None)
    assert weights.dtype == torch.float32
    return weights.tolist()


def test_weights_come_in_the_order_of_the_tasks() -> None:
    assert _weights(ConstantWeighting(weights={"glue/mnli": 3.0, "glue/stsb": 0.0})) == [1.0, 3.0, 0.0]
    assert _weights(SizeWeighting(rule="inverse_min")) == [1.0, 0.25, 0.5]
    expected = [1 / math.log(2), 1 / math.log(3), 2.0]
    assert _weights(MuppetWeighting(regression_weight=2.0)) == pytest.approx(expected)


def test_a_schedule_spans_the_training() -> None:
    settings = ScheduledWeighting(start={"glue/rte": 3.0}, end={"glue/stsb": 2.0})
    assert [_weights(settings, step) for step in (0, 2, 4)] == [[3, 1, 1], [2, 1, 1.5], [1, 1, 2]]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (ConstantWeighting(weights={"glue/cola": 1.0}), "weighting.weights"),
        (ScheduledWeighting(start={"glue/cola": 1.0}), "weighting.start"),
        (ScheduledWeighting(end={"glue/cola": 1.0}), "weighting.end"),
    ],
)
def test_a_weight_for_an_untrained_task_is_refused(settings: WeightingSettings, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"{field} names tasks that are not trained: glue/cola; .*glue/stsb"):
        make_weighting(settings, SPECS, SIZES, 5)


def test_a_stage_of_one_task_may_share_settings_with_a_joint_stage() -> None:
    settings = ConstantWeighting(weights={"glue/mnli": 3.0, "glue/rte": 2.0})
    weighting = make_weighting(settings, SPECS[:1], SIZES, 5)
    assert weighting.weights(0, PRESENT[:1], None, None).tolist() == [2.0]
    with pytest.raises(ConfigError, match="unknown task 'glue/mnly'"):
        make_weighting(ConstantWeighting(weights={"glue/mnly": 3.0}), SPECS[:1], SIZES, 5)


def test_a_size_rule_that_the_sizes_do_not_allow_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"weighting\.rule"):
        make_weighting(SizeWeighting(rule="inverse_log"), SPECS, {**SIZES, "glue/rte": 1}, 5)


def test_static_weightings_need_keep_and_learn_nothing() -> None:
    weighting = make_weighting(ConstantWeighting(), SPECS, SIZES, 5)
    assert weighting.needs == "nothing"
    assert weighting.parameters() == []
    assert weighting.regulariser() is None
    weighting.after_step(None)
    weighting.load_state_dict(weighting.state_dict())
    with pytest.raises(DataError, match="ConstantWeights keeps none"):
        weighting.load_state_dict({"log_variances": [0.0]})


def test_changing_the_answer_does_not_change_the_weighting() -> None:
    weighting = make_weighting(ConstantWeighting(), SPECS, SIZES, 5)
    weighting.weights(0, PRESENT, None, None).zero_()
    assert weighting.weights(1, PRESENT, None, None).tolist() == [1.0, 1.0, 1.0]


class _Alternating(StaticWeighting):
    def weights_at(self, step: int) -> Tensor:
        return torch.tensor([float(step % 2), 1.0, 1.0])


def test_a_plug_in_is_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Settings(WeightingSettings):
        kind: str = "alternating"

    def make(settings: Settings, *_: object) -> Weighting:
        return _Alternating()

    with pytest.raises(ConfigError, match="known are constant, muppet, schedule, size"):
        make_weighting(Settings(), SPECS, SIZES, 5)
    monkeypatch.setattr("mtl.weighting.registry.WEIGHTINGS", dict(WEIGHTINGS))
    register_weighting("alternating", make)
    assert _weights(Settings(), 3) == [1.0, 1.0, 1.0]
    with pytest.raises(ConfigError, match="exists already"):
        register_weighting("alternating", make)
