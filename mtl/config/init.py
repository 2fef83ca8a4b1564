"""Settings of where a run starts from: another run's weights instead of the encoder's own."""

from typing import Literal, Self

from pydantic import Field, model_validator

from mtl.config.path_text import PathText
from mtl.config.settings import Settings


class InitSettings(Settings):
    """``from`` names a run directory, whose weights every stage of this run starts from that has no joint one before.

    ``stage`` says which of its models, ``snapshot`` which of that model's weights. A stage ``single`` or ``finetune``
    has a model for each task: ``task`` names one of them for all that this run trains; without it the model of each
    task starts from that run's model of the same task. With ``task`` the best snapshot of a joint model is the one that
    was best for that task alone. ``heads: keep`` takes over the heads of the tasks that both runs train, ``new`` none.
    The path cannot change a result and is no part of a run's identity; the checksum of the weights is.
    """

    from_: PathText | None = Field(default=None, alias="from", json_schema_extra={"execution": True})
    stage: Literal["single", "joint", "finetune"] = "joint"
    task: str | None = None
    snapshot: Literal["last", "best"] = "last"
    heads: Literal["keep", "new"] = "keep"

    @property
    def by_task(self) -> bool:
        """Whether each task starts from a model of its own."""
        return self.from_ is not None and self.stage != "joint" and self.task is None

    @model_validator(mode="after")
    def _a_task_where_its_snapshot_is_meant(self) -> Self:
        if self.task is not None and self.stage == "joint" and self.snapshot == "last":
            raise ValueError(
                "init.task names the task whose best snapshot of the joint model is meant, but init.snapshot is last: "
                "set init.snapshot=best, or leave init.task out"
            )
        return self
