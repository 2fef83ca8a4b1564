"""The settings of a whole run, and those of one stage or task as resolved from it."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from mtl.config.encoder import ENCODERS, HEADS, AnyEncoder, AnyHead, PretrainedEncoder, SequenceHeadSettings
from mtl.config.init import InitSettings
from mtl.config.path_text import OutputPath, PathText
from mtl.config.sampling import SAMPLINGS, AnySampling, TemperatureSampling
from mtl.config.settings import Settings, execution
from mtl.config.splits import SplitSettings
from mtl.config.training import EvaluationSettings, OptimizerSettings, SelectionSettings, TrainingSettings
from mtl.config.weighting import WEIGHTINGS, AnyWeighting, ConstantWeighting

Stage = Literal["single", "joint", "finetune"]
FinetuneFrom = Literal["selected", "last", "task_best"]
RowLimit = Annotated[int, Field(ge=0)]
ScoredRows = Annotated[int, Field(ge=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]


class DataSettings(Settings):
    """Where rows come from and how they are cut. ``root``: None reads ``MTL_DATA_DIR``; ``cache`` ``MTL_CACHE_DIR``."""

    root: PathText | None = execution(None)
    cache: PathText | None = execution(None)
    max_length: int = Field(default=128, ge=8)
    max_train_rows: RowLimit | dict[str, RowLimit] | None = None
    """At most this many training rows of each task (or of the tasks named); smaller sets are parts of larger ones."""
    fraction: Fraction | dict[str, Fraction] | None = None
    """This share of the training rows of each task (or of the tasks named) in place of a number; nested likewise."""
    max_dev_rows: ScoredRows | dict[str, ScoredRows] | None = None
    """Score each dev split of a trained task (or of the tasks named) on at most so many rows, always the same."""
    shuffled_labels: tuple[str, ...] = ()
    """Tasks that are trained on permuted labels, as a control; what is scored keeps its own."""


class LoggingSettings(Settings):
    """How often to write a record to metrics.jsonl, and whether TensorBoard events are written as well."""

    every: int = Field(default=10, ge=1)
    tensorboard: bool = True


class CheckpointSettings(Settings):
    """How often to save what is needed to resume (None: only when stopped), and how many of those to keep."""

    every: int | None = Field(default=1000, ge=1)
    keep: int = Field(default=1, ge=1)


class StageSettings(Settings):
    """All that a stage block or a task override may set, resolved for one trained model."""

    head: AnyHead = SequenceHeadSettings()
    sampling: AnySampling = TemperatureSampling()
    weighting: AnyWeighting = ConstantWeighting()
    training: TrainingSettings = TrainingSettings(epochs=3, rows_per_update=32)
    optimizer: OptimizerSettings = OptimizerSettings()
    selection: SelectionSettings = SelectionSettings()
    evaluation: EvaluationSettings = EvaluationSettings()


class RunConfig(StageSettings):
    """A run: its tasks, stages, data and encoder, the settings common to all stages, and what a stage or task changes.

    The blocks ``single``, ``joint`` and ``finetune`` override any :class:`StageSettings` key for their stage, and
    ``task_overrides`` for one task; in a joint stage only a task's ``head`` applies. Order: base < stage < task.
    """

    out: OutputPath = execution("runs/run")
    seed: int = Field(default=1, ge=0)
    stages: tuple[Stage, ...] = Field(default=("single", "joint", "finetune"), min_length=1)
    tasks: tuple[str | dict[str, Any], ...] = Field(min_length=1)
    """Names of tasks and suites, and definitions of tasks of the user's own (see mtl.config.task_files)."""
    finetune_from: FinetuneFrom = "selected"
    """Which snapshot of the joint stage a task's fine-tuning starts from: the one that is scored, the last, or the one
    that was best for this very task on what ``joint.selection.on`` names; only then is one kept for each task."""
    data: DataSettings = DataSettings()
    splits: SplitSettings = SplitSettings()
    encoder: AnyEncoder = PretrainedEncoder()
    init: InitSettings = InitSettings()
    logging: LoggingSettings = execution(LoggingSettings())
    checkpoint: CheckpointSettings = execution(CheckpointSettings())
    single: dict[str, Any] = Field(default_factory=dict)
    joint: dict[str, Any] = Field(default_factory=dict)
    finetune: dict[str, Any] = Field(default_factory=dict)
    task_overrides: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_stage_once(self) -> Self:
        if len(set(self.stages)) < len(self.stages):
            raise ValueError("stages names a stage twice")
        return self


def rebuild_models() -> None:
    """Make the models know kinds that were registered after this module was imported."""
    # Innermost first: samplers hold schedules, and a model takes over the schemas that its parts have by then.
    for settings in (*SAMPLINGS.values(), *WEIGHTINGS.values(), *ENCODERS.values(), *HEADS.values()):
        settings.model_rebuild(force=True)
    StageSettings.model_rebuild(force=True)
    RunConfig.model_rebuild(force=True)
