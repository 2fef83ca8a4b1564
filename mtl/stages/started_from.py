"""What the run that weights come from has seen: nothing that this one is scored on, and what chose its weights."""

from collections.abc import Iterator
from pathlib import Path

from mtl import tasks as task_registry
from mtl.config.load import load_config
from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig, Stage
from mtl.errors import ConfigError
from mtl.records import ResultRecord
from mtl.rundir import RunDirectory


def check_source(config: RunConfig, run: RunDirectory) -> None:
    """Raise ConfigError where ``run``, or one that it started from, may have been trained on what is scored here.

    Or on the holdout that this run selects on. Runs further back are looked at as far as they are still there.
    """
    mine = set(_trained(config))
    for path, source in _lineage(run):
        common = mine & set(_trained(source))
        if common and source.splits != config.splits:
            raise ConfigError(
                f"init.from: {path} has divided its tasks otherwise ({_spoken(source)}; this run {_spoken(config)}), "
                f"so it may have been trained on what is scored here of {', '.join(sorted(common))}; set splits alike"
            )
    source = load_config(run.config)
    common = mine & set(_trained(source))
    seen = sorted(task for task in common if _selects(config, task) and _saw(config, source, task))
    if seen:
        raise ConfigError(
            f"init.from: this run selects {', '.join(seen)} on a holdout that {run.path} was trained on; set "
            "selection.on=holdout for both, or selection.on=last here"
        )


def looks_at_dev(config: RunConfig, run: RunDirectory, result: ResultRecord) -> dict[str, int]:
    """By task, how often dev was scored to choose the weights that ``init`` names of ``run``; only where it was.

    The last weights of a training that selects on dev are not chosen, but what that training started from may be.
    """
    source, init = load_config(run.config), config.init
    looks = {}
    for task, record in result.stages[init.stage].tasks.items():
        if record.selected_on != "dev" or init.task not in (None, task):
            continue
        own = resolve_stage(source, init.stage, None if init.stage == "joint" else task).selection.on
        if init.snapshot == "best" or own != "dev":
            looks[task] = record.looks
    return looks


def _trained(config: RunConfig) -> tuple[str, ...]:
    return task_registry.split_roles(task_registry.expand(config.tasks))[0]


def _lineage(run: RunDirectory) -> Iterator[tuple[Path, RunConfig]]:
    """The run, the one that it started from, and so on."""
    seen: set[Path] = set()
    while run.config.is_file() and run.path.resolve() not in seen:
        seen.add(run.path.resolve())
        config = load_config(run.config)
        yield run.path, config
        if config.init.from_ is None:
            return
        run = RunDirectory(Path(config.init.from_))


def _spoken(config: RunConfig) -> str:
    splits = config.splits
    return "no folds" if splits.kfold is None else f"fold {splits.fold} of {splits.kfold} held out"


def _selects(config: RunConfig, task: str) -> bool:
    """Whether some training of the task, or of all, selects on a holdout."""
    return any(_on_holdout(config, stage, task) for stage in config.stages)


def _saw(config: RunConfig, source: RunConfig, task: str) -> bool:
    """Whether the model of ``source`` that is started from was trained on all rows of ``task``."""
    init = config.init
    leading: tuple[Stage, ...] = ("joint", "finetune") if init.stage == "finetune" else (init.stage,)
    return any(
        not _on_holdout(source, stage, task)
        for stage in leading
        if stage in source.stages and (stage == "joint" or init.task in (None, task))
    )


def _on_holdout(config: RunConfig, stage: Stage, task: str) -> bool:
    return resolve_stage(config, stage, None if stage == "joint" else task).selection.on == "holdout"
