"""Samplers and their registry: expected shares, draws that follow from the generator alone, errors that help."""

from collections.abc import Mapping

import numpy as np
import pytest

from mtl.config.sampling import (
    ExactEpochSampling,
    FixedSampling,
    PalsSchedule,
    PowerSampling,
    ProportionalSampling,
    RoundRobinSampling,
    SamplingSettings,
    TemperatureSampling,
    UniformSampling,
)
from mtl.errors import ConfigError
from mtl.random_streams import generator
from mtl.sampling.registry import SAMPLERS, known_samplers, make_sampler, register_sampler
from mtl.sampling.samplers import FixedSampler, Sampler

SIZES = {"glue/rte": 100, "glue/mnli": 1600, "glue/cola": 400}


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        (UniformSampling(), [1 / 3, 1 / 3, 1 / 3]),
        (ProportionalSampling(), [100 / 2100, 1600 / 2100, 400 / 2100]),
        (ProportionalSampling(cap=400), [1 / 9, 4 / 9, 4 / 9]),
        (PowerSampling(exponent=0.5), [1 / 7, 4 / 7, 2 / 7]),
        (TemperatureSampling(temperature=2.0), [1 / 7, 4 / 7, 2 / 7]),
        (TemperatureSampling(temperature=2.0, cap=400), [1 / 5, 2 / 5, 2 / 5]),
        (FixedSampling(shares={"glue/mnli": 2.0}), [1 / 4, 1 / 2, 1 / 4]),
        (RoundRobinSampling(), [1 / 3, 1 / 3, 1 / 3]),
        (ExactEpochSampling(), [100 / 2100, 1600 / 2100, 400 / 2100]),
    ],
)
def test_shares(settings: SamplingSettings, shares: list[float]) -> None:
    sampler = make_sampler(settings, SIZES)
    np.testing.assert_allclose(sampler.probabilities(3, 10), shares, rtol=1e-12)


@pytest.mark.parametrize("kind", [PowerSampling, TemperatureSampling])
def test_a_schedule_moves_the_shares(kind: type[PowerSampling] | type[TemperatureSampling]) -> None:
    start = {"exponent": 1.0} if kind is PowerSampling else {"temperature": 1.0}
    sampler = make_sampler(kind(schedule=PalsSchedule(epochs=5), **start), SIZES)
    first, last = sampler.probabilities(0, 100), sampler.probabilities(99, 100)
    np.testing.assert_allclose(first, np.array([100, 1600, 400]) / 2100)
    np.testing.assert_allclose(last, np.array([1, 16, 4]) ** 0.2 / (np.array([1, 16, 4]) ** 0.2).sum())


def test_draws_follow_the_shares() -> None:
    sampler = make_sampler(TemperatureSampling(temperature=2.0), SIZES)
    draws = sampler.draw(0, 10, 20000, generator(1, "draws"))
    shares = np.bincount(draws, minlength=3) / 20000
    np.testing.assert_allclose(shares, [1 / 7, 4 / 7, 2 / 7], atol=4 * np.sqrt(0.25 / 20000))


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5])
def test_round_robin_reaches_every_task_equally(groups: int) -> None:
    sampler = make_sampler(RoundRobinSampling(), SIZES)
    draws = np.concatenate([sampler.draw(step, 30, groups, generator(1, step)) for step in range(30)])
    assert np.bincount(draws, minlength=3).tolist() == [10 * groups] * 3
    assert draws[:3].tolist() == [0, 1, 2]


def test_shares_of_an_untrained_task_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"sampling\.shares names tasks that are not trained: glue/qqp"):
        make_sampler(FixedSampling(shares={"glue/qqp": 2.0}), SIZES)


def test_a_stage_of_one_task_may_share_settings_with_a_joint_stage() -> None:
    settings = FixedSampling(shares={"glue/qqp": 2.0})
    assert make_sampler(settings, {"glue/rte": 5}).probabilities(0, 1).tolist() == [1.0]
    with pytest.raises(ConfigError, match="unknown task"):
        make_sampler(FixedSampling(shares={"glue/qqpp": 2.0}), {"glue/rte": 5})


def test_a_plug_in_is_a_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Settings(SamplingSettings):
        kind: str = "first"

    def first_only(settings: Settings, sizes: Mapping[str, int]) -> Sampler:
        return FixedSampler(np.eye(len(sizes))[0])

    with pytest.raises(ConfigError, match="no sampler; known are exact_epoch, fixed"):
        make_sampler(Settings(), SIZES)
    monkeypatch.setattr("mtl.sampling.registry.SAMPLERS", dict(SAMPLERS))
    register_sampler("first", first_only)
    assert make_sampler(Settings(), SIZES).probabilities(0, 1).tolist() == [1.0, 0.0, 0.0]
    assert "first" in known_samplers()
    with pytest.raises(ConfigError, match="exists already"):
        register_sampler("first", first_only)
