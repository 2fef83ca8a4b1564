"""Which other runs a config reads: whose weights it starts from, and whose task sequence it replays."""

from collections.abc import Callable
from typing import Any

from mtl.config.merge import merge
from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig
from mtl.config.sampling import ReplaySampling


def replayed_run(config: RunConfig) -> str | None:
    """The directory that ``sampling.from`` names for the joint stage; None where that stage replays nothing."""
    sampling = resolve_stage(config, "joint", None).sampling
    return sampling.from_ if "joint" in config.stages and isinstance(sampling, ReplaySampling) else None


def runs_read(config: RunConfig) -> dict[str, str | None]:
    """The directories of the other runs that a run reads, by the setting that names them; None where it names none."""
    return {"init.from": config.init.from_, "sampling.from": replayed_run(config)}


def changed_runs(before: RunConfig, after: RunConfig, name: Callable[[str], str] = str) -> list[str]:
    """Lines such as ``init.from: not set -> runs/a``, of which :func:`mtl.config.hashes.difference` has none.

    ``name`` says what a directory is called.
    """
    one, other = (
        {key: "not set" if path is None else name(path) for key, path in runs_read(config).items()}
        for config in (before, after)
    )
    return [f"{key}: {one[key]} -> {other[key]}" for key in one if one[key] != other[key]]


def with_replayed_run(config: RunConfig, directory: str) -> RunConfig:
    """A config that replays a run, with the run in ``directory`` instead."""
    if "from" in config.joint.get("sampling", {}):
        return config.model_copy(update={"joint": merge(config.joint, {"sampling": {"from": directory}})})
    return config.model_copy(update={"sampling": config.sampling.model_copy(update={"from_": directory})})


def with_joint_sampling(config: RunConfig, sampling: dict[str, Any]) -> RunConfig:
    """A config whose joint stage has these sampling settings, all of them, in place of its own."""
    return config.model_copy(update={"joint": {**config.joint, "sampling": sampling}})
