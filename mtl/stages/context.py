"""What all trainings of a run share, and what sets one of them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from mtl.config.encoder import HeadSettings
from mtl.config.run import RunConfig, Stage, StageSettings
from mtl.data.tokenizer import TextTokenizer
from mtl.models.load import LoadedEncoder
from mtl.records import CostRecord
from mtl.rundir import StageDirectory
from mtl.runtime.precision import Precision, choose_precision
from mtl.runtime.ranks import ALONE, Ranks
from mtl.runtime.signals import StopSignals
from mtl.stages.datasets import EvaluatedData, TaskData


@dataclass(frozen=True)
class TaskStart:
    """The checkpoint of another run that the models of one task start from, and the checksum of what they take over."""

    checkpoint: Path
    sha256: str


@dataclass(frozen=True)
class InitialWeights:
    """Where every stage begins that has no earlier stage to go on from.

    ``heads``: a checkpoint whose heads are taken over for the tasks both runs train; ``sha256`` identifies all weights
    that do not follow from settings and seed; ``inherited``: what the run it comes from had spent, by name.
    ``by_task``: where each task has a model to start from, its checkpoint, and the checksum of what is taken over.
    ``chain`` stands for the weights in the name of an arm whose runs start from runs of one arm, seed from seed; None
    where ``sha256`` does. ``dev_looks`` is how often dev was scored, by task, to choose the weights, and
    ``known_training_data`` what the encoder of the run that they come from is known to have been trained on.
    """

    loaded: LoadedEncoder
    heads: Path | None
    sha256: str
    inherited: dict[str, CostRecord]
    by_task: Mapping[str, TaskStart] = field(default_factory=dict)
    chain: str | None = None
    dev_looks: Mapping[str, int] = field(default_factory=dict)
    known_training_data: Sequence[str] = ()


@dataclass(frozen=True)
class RunContext:
    """A run's config, its data and the weights it starts from."""

    config: RunConfig
    data: Mapping[str, TaskData]
    evaluated: Mapping[str, EvaluatedData]
    tokenizer: TextTokenizer
    initial: InitialWeights
    device: torch.device
    precision: Precision
    signals: StopSignals
    ranks: Ranks = ALONE

    @property
    def everything(self) -> dict[str, TaskData | EvaluatedData]:
        """The data of all tasks, trained or only evaluated, by name."""
        return {**self.data, **self.evaluated}


def stage_precision(config: RunConfig, settings: StageSettings, whole: Precision, device: torch.device) -> Precision:
    """The precision of a stage: the run's, as resolved at its start, unless the stage's block asks for another."""
    asked = settings.training.precision
    return whole if asked == config.training.precision else choose_precision(asked, device).name


@dataclass(frozen=True)
class Unit:
    """One training: a stage, its task or tasks, its settings, where it writes and where its encoder starts from.

    ``start``: a checkpoint whose encoder and, with ``keep_heads``, heads it begins with; None for the run's initial
    weights.
    """

    stage: Stage
    tasks: tuple[str, ...]
    settings: StageSettings
    heads: Mapping[str, HeadSettings]
    directory: StageDirectory
    start: Path | None = None
    keep_heads: bool = True
    inherited: Mapping[str, CostRecord] = field(default_factory=dict)
    dev_looks_before: Mapping[str, int] = field(default_factory=dict)
    """How often dev was scored, by task, to choose where it starts: its scores are then chosen on dev, whatever this
    training does."""

    @property
    def title(self) -> str:
        """How it is called in logs."""
        return self.stage if self.stage == "joint" else f"{self.stage} {self.tasks[0]}"
