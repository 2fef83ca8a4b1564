"""Settings of where a run starts from: another run's weights instead of the encoder's own."""

from typing import Literal, Self

from pydantic import Field, model_validator

from mtl.config.path_text import PathText
from mtl.config.settings import Settings


class InitSettings(Settings):
    """``from`` names a run directory; its encoder is where every stage of this run starts that has no joint one before.

    ``stage`` (and ``task``, for a stage that trains one task a model) says which of its models, ``snapshot`` which of
    that model's weights. With ``task`` the best snapshot of a joint model is the one that was best for that task alone.
    ``heads: keep`` takes over the heads of the tasks that both runs train, ``new`` none. The path cannot change a
    result and is no part of a run's identity; the checksum of the weights is.
    """

    from_: PathText | None = Field(default=None, alias="from", json_schema_extra={"execution": True})
    stage: Literal["single", "joint", "finetune"] = "joint"
    task: str | None = None
    snapshot: Literal["last", "best"] = "last"
    heads: Literal["keep", "new"] = "keep"

    @model_validator(mode="after")
    def _a_task_where_there_is_one(self) -> Self:
        if self.task is None and self.stage != "joint":
            raise ValueError(f"init.stage is {self.stage}, which has a model for each task: name one in init.task")
        if self.task is not None and self.stage == "joint" and self.snapshot == "last":
            raise ValueError(
                "init.task names the task whose best snapshot of the joint model is meant, but init.snapshot is last: "
                "set init.snapshot=best, or leave init.task out"
            )
        return self
