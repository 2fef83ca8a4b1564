"""Settings of the loss weighting: what each task's loss counts, and how that changes over training."""

from typing import Annotated, Literal

from pydantic import Field

from mtl.config.kinds import OneOf
from mtl.config.settings import Settings

Weight = Annotated[float, Field(ge=0)]
SizeRule = Literal[
    "inverse",
    "inverse_max",
    "inverse_min",
    "proportional",
    "proportional_log",
    "power",
    "inverse_log",
    "inverse_power",
]


class WeightingSettings(Settings):
    """What every weighting's settings have."""

    kind: str


class ConstantWeighting(WeightingSettings):
    """Weights given by task name; a task not named has weight 1."""

    kind: Literal["constant"] = "constant"
    weights: dict[str, Weight] = Field(default_factory=dict)


class SizeWeighting(WeightingSettings):
    """Weights from the tasks' training sizes n.

    The GLUE paper's (Wang et al. 2019, appendix B.2): ``inverse`` 1/n, ``inverse_max`` max/n, ``inverse_min`` min/n.
    Those of jiant 1: ``proportional`` n/max, ``proportional_log`` ln n/ln max, ``power`` (n/max)^a, ``inverse_log``
    ln min/ln n, ``inverse_power`` (min/n)^a, with a = ``exponent``.
    """

    kind: Literal["size"] = "size"
    rule: SizeRule = "inverse_min"
    exponent: float = Field(default=0.5, gt=0)


class MuppetWeighting(WeightingSettings):
    """Aghajanyan et al. (2021), section 3.3: 1 / ln(number of outcomes), so that an ignorant head's loss is 1.

    A regression predicts over no countable outcomes; its weight is ``regression_weight``, 1 unless set.
    """

    kind: Literal["muppet"] = "muppet"
    regression_weight: Weight = 1.0


class ScheduledWeighting(WeightingSettings):
    """Weights that move from ``start`` to ``end`` over the training; a task not named in one has weight 1 there."""

    kind: Literal["schedule"] = "schedule"
    start: dict[str, Weight] = Field(default_factory=dict)
    end: dict[str, Weight] = Field(default_factory=dict)
    shape: Literal["linear", "cosine", "step"] = "linear"
    step_at: float = Field(default=0.5, gt=0, lt=1)
    """Share of the training after which a ``step`` takes the end values."""


WEIGHTINGS: dict[str, type[Settings]] = {
    "constant": ConstantWeighting,
    "size": SizeWeighting,
    "muppet": MuppetWeighting,
    "schedule": ScheduledWeighting,
}
AnyWeighting = Annotated[WeightingSettings, OneOf(WEIGHTINGS)]
