"""The start of a measured training: what `mtl run` would load for the config, in a training of a given length."""

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mtl import tasks as task_registry
from mtl.bench.records import Setting
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig, Stage
from mtl.data.tokenizer import load_tokenizer
from mtl.rundir import RunDirectory
from mtl.runtime.device import describe_hardware, git_commit, versions
from mtl.runtime.precision import Precision
from mtl.runtime.signals import StopSignals
from mtl.stages.checks import check_config
from mtl.stages.context import RunContext, Unit, stage_precision
from mtl.stages.datasets import load_task_data
from mtl.stages.environment import Hardware, start_hardware
from mtl.stages.initial import load_initial_weights


@dataclass(frozen=True)
class Start:
    """Everything a training is built from; nothing of it is written to disk but the token stores."""

    context: RunContext
    unit: Unit
    hardware: Hardware

    @property
    def precision(self) -> Precision:
        """The number format of the forward pass."""
        return stage_precision(self.context.config, self.unit.settings, self.hardware.precision, self.hardware.device)


def start_training(config: RunConfig, updates: int) -> Start:
    """Load data and encoder for a training of ``updates`` updates: joint for several tasks, single for one.

    Settings are those that the stage has in a run, apart from its length: learning rate and sampling run through their
    whole schedule within ``updates``. Raises what the start of a run raises.
    """
    names = task_registry.expand(config.tasks)
    check_config(config, names)
    trained, _ = task_registry.split_roles(names)
    stage: Stage = "joint" if len(trained) > 1 else "single"
    task = None if stage == "joint" else trained[0]
    settings = resolve_stage(config, stage, task)
    length = settings.training.model_copy(update={"updates": updates, "epochs": None})
    hardware = start_hardware(config, None)
    tokenizer = load_tokenizer(config.encoder)
    data = load_task_data(config, [task_registry.get(name) for name in trained], tokenizer, lambda: None)
    initial = load_initial_weights(config, tokenizer)
    # Signals keep their usual effect: there is nothing to save.
    context = RunContext(config, data, {}, tokenizer, initial, hardware.device, hardware.precision, StopSignals())
    unit = Unit(
        stage=stage,
        tasks=trained,
        settings=settings.model_copy(update={"training": length}),
        heads={name: resolve_head(config, stage, name) for name in trained},
        directory=RunDirectory(Path(config.out)).stage(stage, task),
    )
    return Start(context, unit, hardware)


def updates_of(start: Start) -> int:
    """The length of the training, warm-up included."""
    updates = start.unit.settings.training.updates
    assert updates is not None
    return updates


def describe_start(start: Start, parameters: int) -> Setting:
    """The setting of a measurement; ``parameters`` is the size of the model that is trained."""
    context, unit = start.context, start.unit
    return Setting(
        model=getattr(context.config.encoder, "path", context.config.encoder.kind),
        parameters=parameters,
        tasks=unit.tasks,
        stage=unit.stage,
        precision=start.precision,
        precision_reason=start.hardware.reason,
        device=start.hardware.device.type,
        threads=start.hardware.threads,
        max_length=context.config.data.max_length,
        rows_per_update=unit.settings.training.rows_per_update,
        tokens_per_update=unit.settings.training.tokens_per_update,
        dropout=_dropout(start),
        machine=describe_hardware(),
        versions=versions() | _trainer_version(),
        commit=git_commit(Path(__file__).parent),
    )


def _trainer_version() -> dict[str, str]:
    """Of the package that drives the peers' updates, where it is installed."""
    try:
        return {"accelerate": metadata.version("accelerate")}
    except metadata.PackageNotFoundError:
        return {}


def _dropout(start: Start) -> dict[str, float]:
    config = start.context.initial.loaded.encoder.model.config.to_dict()
    found = {
        name: float(value)
        for name, value in config.items()
        if "dropout" in name and isinstance(value, int | float) and not isinstance(value, bool)
    }
    rates = {task: getattr(head, "dropout", None) for task, head in start.unit.heads.items()}
    return found | {f"head of {task}": float(rate) for task, rate in rates.items() if rate is not None}
