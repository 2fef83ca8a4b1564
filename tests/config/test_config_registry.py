"""Kinds that a plug-in registers."""

from collections.abc import Iterator
from typing import Literal

import pytest

from mtl.config import registry
from mtl.config.encoder import HEADS, HeadSettings
from mtl.config.load import load_config
from mtl.config.resolve import resolve_stage
from mtl.config.run import rebuild_models
from mtl.config.sampling import SAMPLINGS, SamplingSettings
from mtl.config.weighting import WEIGHTINGS, WeightingSettings
from mtl.errors import ConfigError


class FavouriteSampling(SamplingSettings):
    kind: Literal["favourite"] = "favourite"
    favourite: str


class LoudWeighting(WeightingSettings):
    kind: Literal["loud"] = "loud"
    factor: float = 2.0


class FlatHead(HeadSettings):
    kind: Literal["flat"] = "flat"


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    registries = (SAMPLINGS, WEIGHTINGS, HEADS)
    before = [dict(known) for known in registries]
    yield
    for known, kinds in zip(registries, before, strict=True):
        known.clear()
        known.update(kinds)
    rebuild_models()


def test_a_registered_kind_is_as_good_as_a_shipped_one() -> None:
    registry.register_sampling("favourite", FavouriteSampling)
    registry.register_weighting("loud", LoudWeighting)
    registry.register_head("flat", FlatHead)
    config = load_config("glue", ["joint.sampling={kind: favourite, favourite: glue/rte}", "weighting=loud"])
    assert resolve_stage(config, "joint", None).sampling == FavouriteSampling(favourite="glue/rte")
    assert config.weighting == LoudWeighting()
    assert load_config("glue", ["head=flat"]).head == FlatHead()
    with pytest.raises(ConfigError, match=r"sampling\.favourit: unknown key; did you mean sampling\.favourite"):
        load_config("glue", ["sampling={kind: favourite, favourite: x, favourit: y}"])


def test_an_unknown_kind_stays_unknown() -> None:
    with pytest.raises(ConfigError, match="unknown kind favourite"):
        load_config("glue", ["sampling=favourite"])


def test_what_cannot_be_registered() -> None:
    with pytest.raises(ConfigError, match="registered already, as UniformSampling"):
        registry.register_sampling("uniform", FavouriteSampling)
    with pytest.raises(ConfigError, match="subclass of SamplingSettings"):
        registry.register_sampling("loud", LoudWeighting)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"must have the field `kind: Literal\['other'\]"):
        registry.register_sampling("other", FavouriteSampling)
    with pytest.raises(ConfigError, match="must have the field"):
        registry.register_head("other", HeadSettings)
