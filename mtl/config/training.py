"""Settings of the training loop: its length, the size and make-up of an update, and where it runs."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mtl.config.settings import Settings, execution

# Setting one of a pair in a later layer drops the other from the earlier ones, so that a recipe's epochs can be
# overridden by updates without having to be unset.
ALTERNATIVES = {
    "updates": "epochs",
    "epochs": "updates",
    "rows_per_update": "tokens_per_update",
    "tokens_per_update": "rows_per_update",
}


class TrainingSettings(Settings):
    """Exactly one of ``updates`` and ``epochs``, and one of ``rows_per_update`` and ``tokens_per_update``, is set.

    ``tasks_per_update``: ``any`` draws each example's task, a number k draws k tasks and gives each an equal part of
    the update. ``combine``: ``share`` minimises sum of w_t s_t L_t, ``equal`` the weighted mean over the tasks present.
    """

    updates: int | None = Field(default=None, ge=1)
    epochs: float | None = Field(default=None, gt=0)
    rows_per_update: int | None = Field(default=None, ge=1)
    tokens_per_update: int | None = Field(default=None, ge=1)
    tasks_per_update: Literal["any"] | Annotated[int, Field(ge=1)] = "any"
    combine: Literal["share", "equal"] = "share"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    micro_batches: int = Field(default=1, ge=1)
    """At least this many forward passes an update (gradient accumulation)."""
    tokens_per_micro_batch: int = execution(16384, ge=1)
    """More micro-batches are made where one would hold more tokens than this."""
    device: str = execution("auto")
    devices: int = execution(1, ge=1, le=1024)
    """Processes of this machine that share every update, each on a GPU of its own, or all on the CPU."""
    threads: int | None = execution(None, ge=1, le=1024)
    """Of each process."""
    allocator: Literal["keep", "system"] = execution("keep")
    """On Linux: ``keep`` holds on to freed memory for the next tensors, ``system`` leaves the C library as it is."""
    kernels: Literal["auto", "compiled", "torch"] = execution("auto")
    """On a CPU: parts of the native pass by C compiled here, or all by torch; ``auto``: compiled where gcc is."""

    @model_validator(mode="after")
    def _one_of_each_pair(self) -> Self:
        for first, second in (("updates", "epochs"), ("rows_per_update", "tokens_per_update")):
            if (getattr(self, first) is None) == (getattr(self, second) is None):
                raise ValueError(f"set exactly one of training.{first} and training.{second}")
        return self


class OptimizerSettings(Settings):
    """AdamW (Loshchilov and Hutter 2019) with warm-up and decay of the learning rate as functions of the step."""

    learning_rate: float = Field(default=3e-5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: float = Field(default=1e-8, gt=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the updates over which the learning rate rises from 0."""
    decay: Literal["linear", "cosine", "constant"] = "linear"
    layer_decay: float | None = Field(default=None, gt=0, le=1)
    """Factor on the learning rate for each layer further from the heads; None for one rate."""
    clip_norm: float | None = Field(default=1.0, gt=0)


class SelectionSettings(Settings):
    """Which snapshot counts: the last, or the best on a holdout of train (or on dev, marked in every table)."""

    on: Literal["last", "holdout", "dev"] = "last"
    patience: int | None = Field(default=None, ge=1)
    """Stop after this many evaluations in a row without a better score; needs ``on: holdout`` or ``dev``."""

    @model_validator(mode="after")
    def _patience_needs_scores(self) -> Self:
        if self.patience is not None and self.on == "last":
            raise ValueError("selection.patience needs selection.on: holdout (or dev)")
        return self


class EvaluationSettings(Settings):
    """When to evaluate during training; at the end every task always is (see data.max_dev_rows)."""

    every: int | None = Field(default=None, ge=1)
    rows_during_training: int | None = Field(default=None, ge=1)
    """Evaluate during training on this many rows of each split, always the same; labelled so in the log."""
    tokens_per_batch: int = Field(default=16384, ge=1)
    save_predictions: bool = True
