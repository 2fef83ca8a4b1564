"""Faults of a config that only show once its tasks and stages are seen together; found before anything is written."""

from collections.abc import Sequence

from mtl.config.encoder import ScratchEncoder
from mtl.config.run import RunConfig
from mtl.errors import ConfigError


def check_config(config: RunConfig, tasks: Sequence[str]) -> None:
    """Raise ConfigError for a config that names no task, overrides one it does not train, or cannot be carried out."""
    if not tasks:
        raise ConfigError(f"tasks {list(config.tasks)} names no task; `mtl tasks` lists them")
    unknown = sorted(set(config.task_overrides) - set(tasks))
    if unknown:
        raise ConfigError(
            f"task_overrides names {', '.join(unknown)}, which this run does not train; it trains {tasks}"
        )
    if "finetune" in config.stages and "joint" not in config.stages[: config.stages.index("finetune")]:
        raise ConfigError(
            f"stages {list(config.stages)}: finetune starts from the joint stage's weights, so joint comes before it"
        )
    if "single" not in config.stages and "finetune" not in config.stages:
        for task, override in config.task_overrides.items():
            beyond = sorted(set(override) - {"head"})
            if beyond:
                raise ConfigError(
                    f"task_overrides.{task} sets {', '.join(beyond)}, but in a joint stage only a task's head applies"
                )
    limited = config.data.max_train_rows
    stray = sorted(set(limited) - set(tasks)) if isinstance(limited, dict) else []
    if stray:
        raise ConfigError(f"data.max_train_rows names {', '.join(stray)}, which this run does not train")
    if isinstance(config.encoder, ScratchEncoder) and config.encoder.positions < config.data.max_length:
        raise ConfigError(
            f"data.max_length is {config.data.max_length}, but encoder.positions only {config.encoder.positions}: "
            "raise the one or lower the other"
        )
