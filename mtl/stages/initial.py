"""The weights a run starts from: the encoder's own, or those of models that another run trained."""

import hashlib
import json
import logging
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from torch import Tensor

from mtl import tasks as task_registry
from mtl.config.load import load_config
from mtl.config.run import RunConfig
from mtl.data.tokenizer import TextTokenizer
from mtl.errors import ConfigError, DataError
from mtl.models.load import LoadedEncoder, load_encoder, load_exactly, weights_sha256
from mtl.records import ResultRecord, read_result, read_stage_record, sum_costs
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_tensors, verify_checkpoint
from mtl.stages.context import InitialWeights, TaskStart
from mtl.stages.environment import read_environment
from mtl.stages.recorded_draws import name_in_chain
from mtl.stages.started_from import check_source, looks_at_dev

logger = logging.getLogger("mtl")


def load_initial_weights(config: RunConfig, tokenizer: TextTokenizer) -> InitialWeights:
    """The encoder that the config describes, with the weights of ``init.from`` if it names a run.

    Where every task has a model of that run to start from, these are only checked, and read when it is their turn.
    Raises ConfigError where that run was not trained on a task that needs its model, DataError where it has no such
    weights, another encoder or another tokenizer.
    """
    loaded = load_encoder(config.encoder, config.seed, tokenizer.vocabulary_size)
    if config.init.from_ is None:
        # A scratch encoder's weights follow from settings and seed, so they must not set arms apart.
        return InitialWeights(loaded, None, loaded.weights_sha256 if config.encoder.kind == "pretrained" else "", {})
    run = RunDirectory(Path(config.init.from_))
    if not run.config.is_file():
        raise DataError(f"init.from: {run.path} is no run directory, it has no config.yaml")
    check_source(config, run)
    if config.init.by_task:
        return _of_each_task(config, run, loaded, tokenizer)
    checkpoint = _checkpoint(config, run, config.init.task)
    _check_tokenizer(run, tokenizer)
    weights = _take_weights(loaded, checkpoint)
    started = LoadedEncoder(loaded.encoder, loaded.pooler, weights_sha256(weights))
    keep = config.init.heads == "keep"
    if keep:
        weights |= _heads(checkpoint)
    logger.info("starting from %s%s", checkpoint, ", its heads kept" if keep else "")
    result = _result(config, run)
    return InitialWeights(
        started,
        checkpoint if keep else None,
        weights_sha256(weights),
        {"init": result.stages[config.init.stage].cost},
        chain=_chain(config, result),
        dev_looks=looks_at_dev(config, run, result),
        known_training_data=result.encoder.known_training_data,
    )


def _of_each_task(
    config: RunConfig, run: RunDirectory, loaded: LoadedEncoder, tokenizer: TextTokenizer
) -> InitialWeights:
    """Every task's models start from that run's model of the same task."""
    tasks = task_registry.split_roles(task_registry.expand(config.tasks))[0]
    _check_tasks(config, run, tasks)
    _check_tokenizer(run, tokenizer)
    keep = config.init.heads == "keep"
    starts = {}
    for task in tasks:
        checkpoint = _checkpoint(config, run, task)
        # Into the one encoder of the run, whose own weights nobody needs: so it is known that they fit.
        weights = _take_weights(loaded, checkpoint) | (_heads(checkpoint) if keep else {})
        starts[task] = TaskStart(checkpoint, weights_sha256(weights))
        logger.info("%s: starting from %s%s", task, checkpoint, ", its head kept" if keep else "")
    named = json.dumps({task: start.sha256 for task, start in starts.items()}, sort_keys=True)
    result = _result(config, run)
    costs = [read_stage_record(run.stage(config.init.stage, task).record).cost for task in tasks]
    return InitialWeights(
        # The same for every seed and task: what is started from is told by task.
        LoadedEncoder(loaded.encoder, loaded.pooler, ""),
        None,
        hashlib.sha256(named.encode()).hexdigest(),
        {"init": reduce(sum_costs, costs)},
        starts,
        _chain(config, result),
        looks_at_dev(config, run, result),
        result.encoder.known_training_data,
    )


def _check_tasks(config: RunConfig, run: RunDirectory, tasks: Sequence[str]) -> None:
    source = load_config(run.config)
    trained = task_registry.split_roles(task_registry.expand(source.tasks))[0]
    missing = [task for task in tasks if task not in trained]
    if config.init.stage not in source.stages or missing:
        lacking = f"was not trained on {', '.join(missing)}" if missing else f"has only the stages {source.stages}"
        raise ConfigError(
            f"init.stage={config.init.stage} without init.task starts each task from the model that {run.path} has of "
            f"it, but that run {lacking}; leave these out, or name one model for all tasks in init.task"
        )


def _take_weights(loaded: LoadedEncoder, checkpoint: Path) -> dict[str, Tensor]:
    """Put the checkpoint's encoder into ``loaded``; its state."""
    load_exactly(loaded.encoder.model, load_tensors(checkpoint, "model"), f"{checkpoint} (encoder)")
    return dict(loaded.encoder.model.state_dict())


def _heads(checkpoint: Path) -> dict[str, Tensor]:
    return {f"head of {name}": tensor for name, tensor in load_tensors(checkpoint, "heads").items()}


def _checkpoint(config: RunConfig, run: RunDirectory, task: str | None) -> Path:
    init = config.init
    if init.stage == "joint" and task is not None:
        directory = run.stage("joint").best_for(task)
        hint = (
            "a joint stage keeps the snapshot that was best for a task only where its run has finetune_from=task_best, "
            "and only of the tasks that it was trained on"
        )
    else:
        directory = run.stage(init.stage, task).checkpoints / init.snapshot
        hint = "look at init.stage, init.task and init.snapshot, and at what that run has finished"
    if not directory.is_dir():
        raise DataError(f"init.from: {run.path} has no weights at {directory.relative_to(run.path)}; {hint}")
    verify_checkpoint(directory)
    return directory


def _check_tokenizer(run: RunDirectory, tokenizer: TextTokenizer) -> None:
    environment = read_environment(run.environment)
    if environment is None or environment.tokenizer_sha256 != tokenizer.fingerprint:
        raise DataError(
            f"init.from: {run.path} was trained with another tokenizer, so its encoder would read other words; use the "
            "same encoder settings in both runs"
        )


def _result(config: RunConfig, run: RunDirectory) -> ResultRecord:
    """The result of the run, which says what the stage that the weights come from had spent, all of its trainings."""
    result = read_result(run.result)
    if config.init.stage not in result.stages:
        raise DataError(f"init.from: the result of {run.path} has no stage {config.init.stage}; let that run finish")
    return result


def _chain(config: RunConfig, source: ResultRecord) -> str | None:
    """What stands for the weights in the name of an arm whose runs go on from runs of one arm, each from its seed."""
    name = name_in_chain(config, source)
    return None if name is None else f"weights of {name}"
