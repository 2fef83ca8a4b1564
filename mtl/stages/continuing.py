"""Going on with a run: only what it was started as, or more of it, and only on what it was started on."""

from mtl import tasks as task_registry
from mtl.atomic import write_text_atomically
from mtl.config.hashes import difference
from mtl.config.load import load_config
from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.stages.environment import RunEnvironment, read_environment


def check_resumed_config(run: RunDirectory, config: RunConfig) -> bool:
    """Whether ``config`` adds stages or tasks to what the run in ``run`` was started with.

    What is trained already is left as it is; a joint model keeps the tasks it was trained on. ConfigError for any other
    change that could change a result.
    """
    before = load_config(run.config)
    stages = tuple(stage for stage in config.stages if stage in before.stages)
    had, has = task_registry.expand(before.tasks), task_registry.expand(config.tasks)
    more = stages == before.stages and has[: len(had)] == had and (stages, had) != (config.stages, has)
    if more and len(has) > len(had) and "joint" in stages and not run.stage("joint").record.is_file():
        raise ConfigError(
            f"{run.path} has not finished its joint stage, to which no task can be added any more; let it finish "
            "(--resume without new tasks), or start a new run in another out="
        )
    compared = before.model_copy(update={"stages": config.stages, "tasks": config.tasks}) if more else before
    changes = difference(compared, config)
    if changes:
        raise ConfigError(
            f"--resume continues {run.path} only as it was started, at most with more stages or tasks, but the config "
            f"differs: {'; '.join(changes)}. Take these back, or start a new run in another out="
        )
    return more


def record_environment(run: RunDirectory, described: RunEnvironment, *, added: bool) -> RunEnvironment:
    """Write environment.json, or on resume make sure that data, encoder and tokenizer are still the same.

    With ``added`` stages or tasks the run has other hashes from here on, and the data of its new tasks beside the old.
    """
    stored = read_environment(run.environment)
    if stored is None:
        return _write(run, described)
    what = _what_changed(stored, described, added=added)
    if what is None and not added and stored.arm_hash != described.arm_hash:
        what = "what the settings mean (it was another version of mtl)"
    if what is not None:
        raise ConfigError(f"{what} changed since {run.path} was started; start a new run in another out=")
    return _write(run, described) if added else stored


def _what_changed(stored: RunEnvironment, described: RunEnvironment, *, added: bool) -> str | None:
    tasks = stored.data if added else {**stored.data, **described.data}
    changed = sorted(task for task in tasks if described.data.get(task) != stored.data.get(task))
    if changed:
        return f"the data of {', '.join(changed)}"
    if stored.encoder_sha256 != described.encoder_sha256:
        return "the encoder's weights"
    others = sorted(task for task, found in stored.init_sha256.items() if described.init_sha256.get(task) != found)
    if others:
        return f"the weights that {', '.join(others)} started from"
    if stored.tokenizer_sha256 != described.tokenizer_sha256:
        return "the tokenizer"
    if stored.sequence_sha256 not in (None, described.sequence_sha256):
        return "the task sequence that sampling.from names"
    return None


def _write(run: RunDirectory, environment: RunEnvironment) -> RunEnvironment:
    write_text_atomically(run.environment, environment.model_dump_json(indent=2) + "\n")
    return environment
