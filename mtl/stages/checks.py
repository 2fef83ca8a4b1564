"""Faults of a config that only show once its tasks and stages are seen together; found before anything is written."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from mtl.config.encoder import ScratchEncoder
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig
from mtl.config.sampling import ReplaySampling
from mtl.errors import ConfigError
from mtl.stages.sizes import train_portion
from mtl.tasks.registry import get, split_roles


def check_config(config: RunConfig, tasks: Sequence[str]) -> None:
    """Raise ConfigError for a config that names no task, overrides one it does not train, or cannot be carried out."""
    trained, evaluated = split_roles(tasks)
    if not trained:
        raise ConfigError(f"tasks {list(config.tasks)} names no task to train; `mtl tasks` lists them")
    for name in evaluated:
        if get(name).scored_by not in trained:
            raise ConfigError(
                f"{name} is scored with the head of {get(name).scored_by}, which this run does not train; it trains "
                f"{', '.join(trained)}"
            )
    _check_trained(config, trained)


def _check_trained(config: RunConfig, tasks: Sequence[str]) -> None:
    unknown = sorted(set(config.task_overrides) - set(tasks))
    if unknown:
        raise ConfigError(
            f"task_overrides names {', '.join(unknown)}, which this run does not train; it trains {tasks}"
        )
    _check_stages(config, tasks)
    _check_hardware(config, tasks)
    _check_data(config, tasks)
    if isinstance(config.encoder, ScratchEncoder) and config.encoder.positions < config.data.max_length:
        raise ConfigError(
            f"data.max_length is {config.data.max_length}, but encoder.positions only {config.encoder.positions}: "
            "raise the one or lower the other"
        )


def _check_data(config: RunConfig, tasks: Sequence[str]) -> None:
    """Settings of tasks by name are of tasks that are trained, and none has its rows cut in two ways."""
    for key in ("max_train_rows", "fraction", "max_dev_rows", "shuffled_labels"):
        setting = getattr(config.data, key)
        stray = sorted(set(setting) - set(tasks)) if isinstance(setting, Mapping | tuple) else []
        if stray:
            raise ConfigError(
                f"data.{key} names {', '.join(stray)}, which this run does not train; it trains {', '.join(tasks)}"
            )
    both = [task for task in tasks if None not in astuple(train_portion(config, task))]
    if both:
        raise ConfigError(
            f"data.max_train_rows and data.fraction both cut the training rows of {', '.join(both)}: set one of them, "
            "and null the other"
        )


def _check_stages(config: RunConfig, tasks: Sequence[str]) -> None:
    """Fine-tuning has a joint model to start from, with heads of the same build; joint overrides have an effect."""
    order = [stage for stage in config.stages if stage != "single"]
    if order == ["finetune", "joint"] or (order == ["finetune"] and config.init.from_ is None):
        raise ConfigError(
            f"stages {list(config.stages)}: finetune starts from joint weights, so joint comes before it, or init.from "
            "names a run that has them"
        )
    if order == ["joint", "finetune"]:
        _check_holdout(config, tasks)
    _check_finetune_from(config)
    if config.init.by_task and "joint" in config.stages:
        raise ConfigError(
            f"init.stage={config.init.stage} without init.task starts each task from a model of its own, but a joint "
            "stage has one model of all tasks: take joint out of stages, or set init.stage=joint or init.task"
        )
    sampling = resolve_stage(config, "joint", None).sampling
    if "joint" in config.stages and isinstance(sampling, ReplaySampling) and sampling.from_ is None:
        raise ConfigError("sampling.kind is replay: set sampling.from to the run whose task sequence is to be replayed")
    if "single" not in config.stages and "finetune" not in config.stages:
        for task, override in config.task_overrides.items():
            beyond = sorted(set(override) - {"head"})
            if beyond:
                raise ConfigError(
                    f"task_overrides.{task} sets {', '.join(beyond)}, but in a joint stage only a task's head applies"
                )
    for task in tasks if order == ["joint", "finetune"] else ():
        joint, finetune = (
            resolve_head(config, stage, task).model_dump(exclude={"dropout", "learning_rate"})
            for stage in ("joint", "finetune")
        )
        if joint != finetune:
            raise ConfigError(
                f"the head of {task} is {joint} in the joint stage and {finetune} in finetune, which goes on with it: "
                "set head alike in both"
            )


def _check_finetune_from(config: RunConfig) -> None:
    """A choice among the joint stage's snapshots needs that stage, and one by score needs scores during it."""
    chosen = config.finetune_from
    if "finetune" in config.stages and "joint" not in config.stages and chosen != "selected":
        raise ConfigError(
            f"finetune_from={chosen} chooses among the snapshots of this run's joint stage, but stages "
            f"{list(config.stages)} have none; add joint to them, or leave finetune_from out and choose with "
            "init.snapshot and init.task"
        )
    scored = resolve_stage(config, "joint", None).selection.on != "last"
    if "joint" in config.stages and chosen == "task_best" and not scored:
        raise ConfigError(
            "finetune_from=task_best starts each task from the joint snapshot that scored best for it, but "
            "joint.selection.on is last, so none is scored; set joint.selection.on=holdout (or dev), or "
            "leave finetune_from out"
        )


def _check_holdout(config: RunConfig, tasks: Sequence[str]) -> None:
    """Fine-tuning may only select on rows that the joint stage it goes on from was not trained on."""
    if resolve_stage(config, "joint", None).selection.on == "holdout":
        return
    seen = [task for task in tasks if resolve_stage(config, "finetune", task).selection.on == "holdout"]
    if seen:
        raise ConfigError(
            f"the fine-tuning of {', '.join(seen)} selects on a holdout that the joint stage is trained on; set "
            "selection.on=holdout for both"
        )


def _check_hardware(config: RunConfig, tasks: Sequence[str]) -> None:
    """A run has one device, number of devices and number of threads for all of its stages."""
    for stage in config.stages:
        for task in [None] if stage == "joint" else tasks:
            training = resolve_stage(config, stage, task).training
            for name in ("device", "devices", "threads"):
                here, whole = getattr(training, name), getattr(config.training, name)
                if here != whole:
                    raise ConfigError(
                        f"training.{name} is {here} in {stage if task is None else f'{stage} of {task}'} but {whole} "
                        f"in the run: a run has one, so set training.{name} itself"
                    )
