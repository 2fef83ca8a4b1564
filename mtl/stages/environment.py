"""What a run ran on: hardware, versions and data, resolved once and kept for its resumes."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mtl.config.hashes import arm_hash, run_hash
from mtl.config.run import RunConfig
from mtl.errors import DataError
from mtl.models.kernels.compiled import choose_kernels, compiled_kernels
from mtl.runtime.allocator import set_allocator
from mtl.runtime.device import choose_device, describe_hardware, git_commit, versions
from mtl.runtime.machine import usable_cores
from mtl.runtime.precision import Precision, choose_precision
from mtl.runtime.ranks import ALONE, Ranks
from mtl.runtime.torchrun import ranks_here
from mtl.stages.context import RunContext
from mtl.stages.recorded_draws import RecordedDraws, recorded_draws
from mtl.tasks.custom import spec_fingerprint

logger = logging.getLogger("mtl")


class Hardware(BaseModel):
    """The resolved execution settings: device type, precision of the forward pass with the reason, threads."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    device: torch.device
    precision: Precision
    reason: str
    threads: int


class RunEnvironment(BaseModel):
    """The content of environment.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm_hash: str
    run_hash: str
    chain_hash: str | None = None
    device: str
    precision: Precision
    precision_reason: str
    threads: int
    kernels: Literal["compiled", "torch"] = "torch"
    ranks: int = 1
    versions: dict[str, str]
    git_commit: str | None
    hardware: dict[str, JsonValue]
    encoder_sha256: str
    init_sha256: dict[str, str] = {}
    """What each task's models start from, where every task has another run's model of its own."""
    tokenizer_sha256: str
    sequence_sha256: str | None = None
    """Of the recorded task sequence that the joint stage replays, if it does."""
    data: dict[str, dict[str, dict[str, int | str | None]]]


def start_hardware(config: RunConfig, stored: RunEnvironment | None, ranks: Ranks = ALONE) -> Hardware:
    """Choose device, precision and threads, and set torch's; a resumed run keeps what it was started with.

    Threads are each rank's own: as set, or the cores divided by the ranks that share them. A resumed run keeps them
    only where it has as many ranks as before.
    """
    training = config.training
    device = choose_device(training.device)
    threads = training.threads or _default_threads(ranks)
    if stored is not None and stored.device == device.type:
        precision, reason = stored.precision, stored.precision_reason
        threads = stored.threads if stored.ranks == ranks.size else threads
    else:
        precision, reason = choose_precision(training.precision, device)
    torch.set_num_threads(threads)
    together = f", on each of {ranks.size} ranks" if ranks.size > 1 else ""
    logger.info("%s, %d threads%s. %s", device, threads, together, reason)
    logger.info("%s", set_allocator(training.allocator))
    if device.type == "cpu":
        # A run that began without compiled kernels rounds as it did to its end.
        began_without = stored is not None and stored.kernels == "torch" and training.kernels == "auto"
        if began_without:
            logger.info("the run began without compiled kernels and keeps to that")
        logger.info("%s", choose_kernels("torch" if began_without else training.kernels))
    return Hardware(device=device, precision=precision, reason=reason, threads=threads)


def agree_on_kernels(ranks: Ranks) -> None:
    """Leave torch to do the work on all ranks where any has no compiled kernels.

    Each takes the optimiser's steps for itself: rounded in two ways, weights would drift apart.
    """
    without = compiled_kernels() is None
    if ranks.any([without])[0] and not without:
        logger.info("another rank has no compiled kernels: %s", choose_kernels("torch"))


def _default_threads(ranks: Ranks) -> int:
    if ranks.size == 1 or "OMP_NUM_THREADS" in os.environ:
        return torch.get_num_threads()
    return max(1, (usable_cores() or 1) // ranks_here())


def describe_run(context: RunContext, hardware: Hardware, ranks: Ranks) -> RunEnvironment:
    """The environment of a run that starts now, with both hashes."""
    data = {task: found.describe() for task, found in context.everything.items()}
    fingerprints = {
        f"{task}/{split}": str(facts["sha256"]) for task, splits in data.items() for split, facts in splits.items()
    }
    # What a shipped task is belongs to the code; what a user's own one is can change between two runs of an arm.
    fingerprints |= {
        task: spec_fingerprint(found.spec)
        for task, found in context.everything.items()
        if found.spec.files_root is not None
    }
    replayed = recorded_draws(context.config)
    arm, chain = _arms(context, fingerprints, replayed)
    return RunEnvironment(
        arm_hash=arm,
        run_hash=run_hash(arm, context.config.seed, context.config.splits.held_out),
        chain_hash=chain,
        device=hardware.device.type,
        precision=hardware.precision,
        precision_reason=hardware.reason,
        threads=hardware.threads,
        kernels="compiled" if compiled_kernels() is not None and hardware.device.type == "cpu" else "torch",
        ranks=ranks.size,
        versions=versions(),
        git_commit=git_commit(Path(__file__).parent),
        hardware=describe_hardware(),
        encoder_sha256=context.initial.loaded.weights_sha256,
        init_sha256={task: start.sha256 for task, start in context.initial.by_task.items()},
        tokenizer_sha256=context.tokenizer.fingerprint,
        sequence_sha256=None if replayed is None else replayed.sha256,
        data=data,
    )


def _arms(
    context: RunContext, fingerprints: Mapping[str, str], replayed: RecordedDraws | None
) -> tuple[str, str | None]:
    """The arm's hash, and its hash with what stands for weights and draws of other runs of one arm, if there are."""
    initial, config, tasks = context.initial, context.config, tuple(context.everything)

    def hashed(weights: str, draws: str | None) -> str:
        data = {**fingerprints, **({} if draws is None else {"sampling.from": draws})}
        return arm_hash(config, tasks=tasks, data_fingerprints=data, encoder_hash=weights)

    sha256, chain = (None, None) if replayed is None else (replayed.sha256, replayed.chain)
    chained = initial.chain is not None or chain is not None
    return hashed(initial.sha256, sha256), hashed(initial.chain or initial.sha256, chain or sha256) if chained else None


def read_environment(path: Path) -> RunEnvironment | None:
    """The environment a run was started with; None before its start. DataError where the file is damaged."""
    if not path.is_file():
        return None
    try:
        return RunEnvironment.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(
            f"{path} is damaged, or of another version of mtl: copy it anew, or start a new run in another out="
        ) from error
