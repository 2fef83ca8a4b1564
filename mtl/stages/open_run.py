"""A finished run's models, opened again: the same weights, batches and precision as the run's own scores are of."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mtl import tasks as task_registry
from mtl.config.load import load_config
from mtl.config.locations import cache_directory, data_root
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig, Stage, StageSettings
from mtl.data.build_store import load_store
from mtl.data.folds import folded_splits
from mtl.data.sources import count_rows, source_fingerprint
from mtl.data.store import TokenStore
from mtl.data.tokenizer import tokenizer_from_path
from mtl.errors import ConfigError, DataError
from mtl.evaluation.evaluate import Evaluator
from mtl.models.head_registry import make_head
from mtl.models.load import load_saved_encoder
from mtl.models.multitask import MultitaskModel
from mtl.rundir import RunDirectory, StageDirectory
from mtl.runtime.checkpoint_files import verify_checkpoint
from mtl.runtime.precision import Precision
from mtl.runtime.signals import StopSignals
from mtl.stages.context import stage_precision
from mtl.stages.environment import Hardware, read_environment, start_hardware
from mtl.stages.models import check_heads, load_weights
from mtl.stages.training_files import selected_weights
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class OpenedModel:
    """The selected weights of one training with the head of ``spec``, on the run's device."""

    spec: TaskSpec
    model: MultitaskModel
    directory: Path
    evaluator: Evaluator


@dataclass(frozen=True)
class OpenedRun:
    """A run's config, the tasks it trained or only evaluated, those it trained, and what it is run on now."""

    run: RunDirectory
    config: RunConfig
    names: tuple[str, ...]
    trained: tuple[str, ...]
    hardware: Hardware
    signals: StopSignals
    precision: Precision | None = None
    """Of the forward pass; None for that of the training, which the run's own scores were computed in."""

    def choose(self, patterns: Sequence[str]) -> tuple[TaskSpec, ...]:
        """The tasks that ``patterns`` select, those of the run's config by default; ConfigError without a head."""
        names = task_registry.expand(patterns) if patterns else self.names
        specs = tuple(task_registry.get(name) for name in names)
        strangers = sorted({head_task(spec) for spec in specs} - set(self.trained))
        if strangers:
            raise ConfigError(
                f"{self.run.path} was not trained on {', '.join(strangers)}; it was on {', '.join(self.trained)}"
            )
        return specs

    def settings(self, stage: Stage, task: str) -> StageSettings:
        """What held in the training of ``stage`` that ``task`` was part of."""
        return resolve_stage(self.config, stage, _unit(stage, task))

    def weights(self, stage: Stage, task: str) -> Path:
        """The checkpoint that the scores of ``task`` in ``stage`` are of; DataError where it is missing or damaged."""
        directory = selected_weights(self.stage_directory(stage, task), self.settings(stage, task).selection)
        verify_checkpoint(directory)
        return directory

    def stage_directory(self, stage: Stage, task: str) -> StageDirectory:
        """The directory of the training of ``stage`` that ``task`` was part of."""
        return self.run.stage(stage, _unit(stage, task))

    def open_model(self, stage: Stage, task: str) -> OpenedModel:
        """The model of ``stage`` with the head of ``task``, one the run trained, ready to predict."""
        spec, settings, directory = task_registry.get(task), self.settings(stage, task), self.weights(stage, task)
        check_heads(directory, [spec])
        encoder = load_saved_encoder(directory, self.config.encoder.batching)
        head = make_head(spec, encoder.width, resolve_head(self.config, stage, task))
        model = MultitaskModel(encoder, {task: head})
        load_weights(model, directory)
        hardware = self.hardware
        trained_in = stage_precision(self.config, settings, hardware.precision, hardware.device)
        evaluator = Evaluator(
            settings.evaluation.tokens_per_batch,
            self.precision or trained_in,
            hardware.device,
            check=self.signals.raise_if_requested,
        )
        return OpenedModel(spec, model.to(hardware.device), directory, evaluator)

    def store(self, spec: TaskSpec, split: str, directory: Path) -> TokenStore:
        """A split's rows as the tokenizer in the checkpoint ``directory`` cuts them; of a task in folds, the run's."""
        names, folds = ("train", *spec.dev_splits), self.config.splits.kfold
        if folds is not None and spec.name in self.trained and split in names:
            own = {name: self._file(spec, name, directory) for name in names}
            folded = folded_splits(spec, own, folds, self.config.splits.fold)
            if folded is not None:
                return folded.train if split == "train" else folded.dev
        return self._file(spec, split, directory)

    def _file(self, spec: TaskSpec, split: str, directory: Path) -> TokenStore:
        return load_store(
            spec,
            split,
            tokenizer_from_path(directory),
            max_length=self.config.data.max_length,
            root=data_root(self.config),
            cache=cache_directory(self.config),
        )

    def missing_rows(self, spec: TaskSpec, split: str) -> bool:
        """Whether a split is neither at hand nor to be had from the hub."""
        root = data_root(self.config)
        if count_rows(spec, split, root) is not None:
            return False
        try:
            source_fingerprint(spec, split, root)
        except DataError:
            return True
        return False


@contextmanager
def open_run(path: Path, *, precision: Precision | None = None) -> Iterator[OpenedRun]:
    """The run at ``path``; a signal in the block ends it between two batches. DataError where there is no run."""
    run = RunDirectory(path)
    if not run.config.is_file():
        raise DataError(f"{path} is no run directory: it has no config.yaml")
    config = load_config(run.config)
    names = task_registry.expand(config.tasks)
    trained, _ = task_registry.split_roles(names)
    hardware = start_hardware(config, read_environment(run.environment))
    with StopSignals() as signals:
        yield OpenedRun(run, config, names, trained, hardware, signals, precision)


def head_task(spec: TaskSpec) -> str:
    """The task whose head reads the rows of ``spec``: its own, or the one it is scored by."""
    return spec.scored_by or spec.name


def has_split(spec: TaskSpec, split: str) -> bool:
    """Whether a task has a split of that name, or several of that kind."""
    return any(name == split or name.startswith(f"{split}_") for name in spec.splits)


def matching_splits(spec: TaskSpec, split: str) -> tuple[str, ...]:
    """The split of that name, or where a task has several of a kind (``test`` of MNLI) all of them, in order.

    ConfigError names the splits there are.
    """
    found = (split,) if split in spec.splits else tuple(name for name in spec.splits if name.startswith(f"{split}_"))
    if not found:
        raise ConfigError(f"{spec.name} has no split {split!r}; it has {', '.join(spec.splits)}")
    return found


def _unit(stage: Stage, task: str) -> str | None:
    return None if stage == "joint" else task
