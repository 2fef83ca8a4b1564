"""A run on as many devices as its config says: here, or in processes that torch's launcher starts."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import yaml

from mtl import tasks as task_registry
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig
from mtl.config.settings import Settings
from mtl.errors import ConfigError
from mtl.records import ResultRecord, read_result
from mtl.rundir import RunDirectory, check_place
from mtl.runtime.device import choose_device
from mtl.runtime.launch import launch_ranks
from mtl.runtime.torchrun import is_launched, launched_ranks
from mtl.stages.checks import check_config
from mtl.stages.pipeline import run_pipeline


def run_on_devices(
    config: RunConfig, *, resume: bool = False, overwrite: bool = False, plugins: Sequence[str] = ()
) -> ResultRecord:
    """The run of :func:`run_pipeline`, in ``training.devices`` processes where torchrun has not started them already.

    ``plugins`` are the modules that each process imports first. A config that is refused starts none.
    """
    devices = config.training.devices
    if is_launched():
        if devices not in (1, launched_ranks()):
            raise ConfigError(
                f"training.devices={devices}, but torchrun started {launched_ranks()} ranks: leave training.devices "
                "out, or run without torchrun"
            )
        return run_pipeline(config, resume=resume, overwrite=overwrite)
    if devices == 1:
        return run_pipeline(config, resume=resume, overwrite=overwrite)
    _check_launch(config, plugins)
    flags = [*(["--resume"] if resume else []), *(["--overwrite"] if overwrite else [])]
    with tempfile.TemporaryDirectory(prefix="mtl-config-") as place:
        path = Path(place) / "config.yaml"
        path.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True), "utf-8")
        launch_ranks(devices, ["run", str(path), *flags, *(word for name in plugins for word in ("--plugin", name))])
    return read_result(RunDirectory(Path(config.out)).result)


def _check_launch(config: RunConfig, plugins: Sequence[str]) -> None:
    """Raise here, once, the ConfigError that every process would raise at its start."""
    names = task_registry.expand(config.tasks)
    check_config(config, names)
    check_place(Path(config.out))
    devices, requested = config.training.devices, config.training.device
    if requested.startswith("cuda:"):
        raise ConfigError(
            f"training.device={requested!r} names one GPU, but training.devices is {devices}: use auto or cuda"
        )
    if choose_device(requested).type == "cuda" and torch.cuda.device_count() < devices:
        raise ConfigError(
            f"training.devices={devices}, but torch sees {torch.cuda.device_count()} GPUs: lower it, or set "
            "training.device=cpu"
        )
    if not plugins and (foreign := list(_known_here_only(config, names))):
        raise ConfigError(
            f"training.devices={devices} starts other processes, in which {', '.join(foreign)} would not be "
            "registered: name the modules that register them with plugins= (--plugin), or start this program with "
            "torchrun"
        )


def _known_here_only(config: RunConfig, names: Sequence[str]) -> Iterator[str]:
    """What the config uses that this process has registered and a new one would not know."""
    yield from (name for name in names if task_registry.is_registered_here(name))
    used: list[Settings] = [config.sampling, config.weighting, config.head]
    for stage in config.stages:
        for task in [None] if stage == "joint" else task_registry.split_roles(names)[0]:
            settings = resolve_stage(config, stage, task)
            used += [settings.sampling, settings.weighting]
        used += [resolve_head(config, stage, name) for name in names]
    yield from sorted({type(part).__name__ for part in used if not type(part).__module__.startswith("mtl.")})
