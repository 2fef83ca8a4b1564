"""Settings of the task sampler: how often each task is drawn, and how that changes over training."""

from typing import Annotated, Literal

from pydantic import Field

from mtl.config.kinds import OneOf
from mtl.config.path_text import PathText
from mtl.config.settings import Settings

Share = Annotated[float, Field(gt=0)]
Exponent = Annotated[float, Field(ge=0)]


class ConstantSchedule(Settings):
    """The exponent stays what the sampler says."""

    kind: Literal["constant"] = "constant"


class LinearSchedule(Settings):
    """The exponent goes in a straight line from the sampler's to ``end`` over the training."""

    kind: Literal["linear"] = "linear"
    end: Exponent = 0.2


class CosineSchedule(Settings):
    """The exponent goes along half a cosine from the sampler's to ``end`` over the training."""

    kind: Literal["cosine"] = "cosine"
    end: Exponent = 0.2


class PalsSchedule(Settings):
    """Stickland and Murray (2019): the sampler's exponent times ``1 - 0.8 (e - 1) / (E - 1)`` in the e-th of E parts.

    Theirs starts at the sizes themselves: temperature or exponent 1.
    """

    kind: Literal["pals"] = "pals"
    epochs: int = Field(default=25, ge=1)


SCHEDULES: dict[str, type[Settings]] = {
    "constant": ConstantSchedule,
    "linear": LinearSchedule,
    "cosine": CosineSchedule,
    "pals": PalsSchedule,
}
ScheduleSettings = Annotated[ConstantSchedule | LinearSchedule | CosineSchedule | PalsSchedule, OneOf(SCHEDULES)]


class SamplingSettings(Settings):
    """What every sampler's settings have: ``sizes`` says whether local or official row counts drive it."""

    kind: str
    sizes: Literal["actual", "official"] = "actual"


class UniformSampling(SamplingSettings):
    """Every task as often as any other."""

    kind: Literal["uniform"] = "uniform"


class ProportionalSampling(SamplingSettings):
    """Each task in proportion to its size, sizes capped first where ``cap`` is set."""

    kind: Literal["proportional"] = "proportional"
    cap: int | None = Field(default=None, ge=1)


class PowerSampling(SamplingSettings):
    """Each task in proportion to its capped size raised to ``exponent``."""

    kind: Literal["power"] = "power"
    exponent: Exponent = 0.75
    cap: int | None = Field(default=None, ge=1)
    schedule: ScheduleSettings = ConstantSchedule()


class TemperatureSampling(SamplingSettings):
    """Each task in proportion to its capped size raised to ``1 / temperature``: cap first, then root."""

    kind: Literal["temperature"] = "temperature"
    temperature: float = Field(default=1.0, gt=0)
    cap: int | None = Field(default=None, ge=1)
    schedule: ScheduleSettings = ConstantSchedule()


class FixedSampling(SamplingSettings):
    """Shares given by name; they are normalised, and a task not named has share 1 before that."""

    kind: Literal["fixed"] = "fixed"
    shares: dict[str, Share] = Field(default_factory=dict)


class RoundRobinSampling(SamplingSettings):
    """The tasks in turn."""

    kind: Literal["round_robin"] = "round_robin"


class ExactEpochSampling(SamplingSettings):
    """Every example of every task exactly once an epoch, the tasks evenly interleaved."""

    kind: Literal["exact_epoch"] = "exact_epoch"


class ReplaySampling(SamplingSettings):
    """In every update as many examples of each task as the joint stage of another run drew; ``from`` is its directory.

    A model of one task has nothing to replay. The path cannot change a result and is no part of a run's identity; the
    checksum of the recorded sequence is.
    """

    kind: Literal["replay"] = "replay"
    from_: PathText | None = Field(default=None, alias="from", json_schema_extra={"execution": True})


SAMPLINGS: dict[str, type[Settings]] = {
    "uniform": UniformSampling,
    "proportional": ProportionalSampling,
    "power": PowerSampling,
    "temperature": TemperatureSampling,
    "fixed": FixedSampling,
    "round_robin": RoundRobinSampling,
    "exact_epoch": ExactEpochSampling,
    "replay": ReplaySampling,
}
AnySampling = Annotated[SamplingSettings, OneOf(SAMPLINGS)]
