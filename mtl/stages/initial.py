"""The weights a run starts from: the encoder's own, or those of a model that another run trained."""

import logging
from pathlib import Path

from mtl.config.run import RunConfig
from mtl.data.tokenizer import TextTokenizer
from mtl.errors import DataError
from mtl.models.load import LoadedEncoder, load_encoder, load_exactly, weights_sha256
from mtl.records import CostRecord, read_result
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_tensors, verify_checkpoint
from mtl.stages.context import InitialWeights
from mtl.stages.environment import read_environment

logger = logging.getLogger("mtl")


def load_initial_weights(config: RunConfig, tokenizer: TextTokenizer) -> InitialWeights:
    """The encoder that the config describes, with the weights of ``init.from`` if it names a run.

    Raises DataError where that run has no such weights, another encoder or another tokenizer.
    """
    loaded = load_encoder(config.encoder, config.seed, tokenizer.vocabulary_size)
    if config.init.from_ is None:
        # A scratch encoder's weights follow from settings and seed, so they must not set arms apart.
        return InitialWeights(loaded, None, loaded.weights_sha256 if config.encoder.kind == "pretrained" else "", {})
    run = RunDirectory(Path(config.init.from_))
    checkpoint = _checkpoint(config, run)
    _check_tokenizer(run, tokenizer)
    load_exactly(loaded.encoder.model, load_tensors(checkpoint, "model"), f"{checkpoint} (encoder)")
    weights = dict(loaded.encoder.model.state_dict())
    started = LoadedEncoder(loaded.encoder, loaded.pooler, weights_sha256(weights))
    keep = config.init.heads == "keep"
    if keep:
        weights |= {f"head of {name}": tensor for name, tensor in load_tensors(checkpoint, "heads").items()}
    logger.info("starting from %s%s", checkpoint, ", its heads kept" if keep else "")
    return InitialWeights(started, checkpoint if keep else None, weights_sha256(weights), {"init": _cost(config, run)})


def _checkpoint(config: RunConfig, run: RunDirectory) -> Path:
    init = config.init
    if init.stage == "joint" and init.task is not None:
        directory = run.stage("joint").best_for(init.task)
        hint = (
            "a joint stage keeps the snapshot that was best for a task only where its run has finetune_from=task_best, "
            "and only of the tasks that it was trained on"
        )
    else:
        directory = run.stage(init.stage, init.task).checkpoints / init.snapshot
        hint = "look at init.stage, init.task and init.snapshot, and at what that run has finished"
    if not run.config.is_file():
        raise DataError(f"init.from: {run.path} is no run directory, it has no config.yaml")
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


def _cost(config: RunConfig, run: RunDirectory) -> CostRecord:
    """What the stage that the weights come from had spent, all of its trainings, as its result says."""
    stage = read_result(run.result).stages.get(config.init.stage)
    if stage is None:
        raise DataError(f"init.from: the result of {run.path} has no stage {config.init.stage}; let that run finish")
    return stage.cost
