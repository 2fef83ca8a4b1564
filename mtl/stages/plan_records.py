"""What a plan says: plain data, a record for the run and each of its parts."""

from dataclasses import dataclass
from typing import Any

from mtl.config.run import Stage


@dataclass(frozen=True)
class Cost:
    """What a training, or several one after the other, are expected to take; None where it cannot be told.

    ``flops`` are the useful operations of the updates, ``evaluation_flops`` those of evaluations. ``memory_bytes`` is
    the most at any time. ``disk_bytes`` stay on disk as checkpoints, ``disk_bytes_most`` are there at some time.
    """

    updates: int | None
    tokens: float | None
    flops: float | None
    evaluation_flops: float | None
    training_seconds: float | None
    evaluation_seconds: float | None
    memory_bytes: float | None
    disk_bytes: float | None
    disk_bytes_most: float | None

    @property
    def seconds(self) -> float | None:
        """Of updates and evaluations together."""
        if self.training_seconds is None or self.evaluation_seconds is None:
            return None
        return self.training_seconds + self.evaluation_seconds


@dataclass(frozen=True)
class StageCosts:
    """A stage's models in the order they are trained, and all of them together."""

    stage: Stage
    models: tuple[Cost, ...]
    total: Cost


@dataclass(frozen=True)
class RunCosts:
    """All stages. ``flops_per_thousand_tokens``: of training the encoder, attention and heads left out.

    ``basis`` says what times and memory follow from.
    """

    stages: tuple[StageCosts, ...]
    total: Cost
    parameters: int | None
    flops_per_thousand_tokens: float | None
    basis: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TaskPlan:
    """One task in one trained model.

    ``counts_as`` is the size its probability is computed from, after the cap; None where sizes play no part.
    ``probability`` is of the first update, ``probability_end`` of the last, ``share`` the mean over all: of rows, or of
    tokens where updates are sized in tokens. ``expected_examples`` and ``expected_epochs`` are None where unknown.
    """

    task: str
    rows: int
    rows_official: int | None
    counts_as: int | None
    probability: float
    probability_end: float
    share: float
    expected_examples: float | None
    expected_epochs: float | None


@dataclass(frozen=True)
class ModelPlan:
    """One trained model: of all tasks, or of ``task``. ``changes`` are its settings that its stage does not have."""

    task: str | None
    changes: dict[str, Any]
    updates: int | None
    tasks: tuple[TaskPlan, ...]


@dataclass(frozen=True)
class StagePlan:
    """One stage: its settings by dotted key, and its models in the order they are trained."""

    stage: Stage
    settings: dict[str, Any]
    models: tuple[ModelPlan, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RunPlan:
    """A whole run. ``data_root`` is None where none is set, or official sizes stand in for data.

    ``devices``: the processes that share every update; no number of the plan depends on it.
    """

    out: str
    seed: int
    tasks: tuple[str, ...]
    encoder: dict[str, Any]
    data_root: str | None
    official_sizes: bool
    devices: int
    stages: tuple[StagePlan, ...]
    notes: tuple[str, ...]
    costs: RunCosts
