"""Which other arms the runs of an arm go on from or repeat, and whether these will have what is asked of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.tasks.registry import split_roles


@dataclass(frozen=True)
class PlannedArm:
    """The settings of an arm's runs but for their seed, and the names of the tasks in them."""

    config: RunConfig
    tasks: tuple[str, ...]
    starts_from: str | None
    """The arm whose weights its runs start from."""
    replays: str | None
    """The arm whose task sequences its runs repeat."""

    @property
    def sources(self) -> dict[str, str]:
        """The arms that its runs wait for, by the setting that names them."""
        named = {"init.from": self.starts_from, "sampling.from": self.replays}
        return {setting: arm for setting, arm in named.items() if arm is not None}

    @property
    def trained(self) -> tuple[str, ...]:
        """Its tasks but those that are only scored."""
        return split_roles(self.tasks)[0]


def check_sources(arms: Mapping[str, PlannedArm]) -> None:
    """ConfigError where an arm starts from what its source does not train or keep, or cannot replay its joint stage."""
    for name, arm in arms.items():
        try:
            if arm.starts_from is not None:
                _check_start(arm, arms[arm.starts_from])
            if arm.replays is not None:
                _check_replayed(arm, arms[arm.replays])
        except ConfigError as error:
            raise ConfigError(f"arm {name}: {error}") from error


def _check_start(arm: PlannedArm, source: PlannedArm) -> None:
    init = arm.config.init
    if init.stage not in source.config.stages:
        raise ConfigError(
            f"init.stage is {init.stage}, but the arm {arm.starts_from} has only the stages "
            f"{list(source.config.stages)}"
        )
    wanted = arm.trained if init.by_task else () if init.task is None else (init.task,)
    missing = sorted(set(wanted) - set(source.trained))
    if missing:
        raise ConfigError(
            f"it starts from models of {', '.join(missing)}, which the arm {arm.starts_from} does not train"
        )
    if init.snapshot == "best":
        _check_best(arm, source, (None,) if init.stage == "joint" else wanted)


def _check_best(arm: PlannedArm, source: PlannedArm, tasks: Sequence[str | None]) -> None:
    """A best snapshot is kept where weights are selected; one for a task of a joint stage where that is asked for."""
    init = arm.config.init
    for task in tasks:
        if resolve_stage(source.config, init.stage, task).selection.on == "last":
            of_task = "" if task is None else f" of {task}"
            raise ConfigError(
                f"init.snapshot is best, but the arm {arm.starts_from} selects nothing in its stage "
                f"{init.stage}{of_task}; set selection.on=holdout there, or init.snapshot=last"
            )
    if init.stage == "joint" and init.task is not None and source.config.finetune_from != "task_best":
        raise ConfigError(
            f"it starts from the snapshot that was best for {init.task}, and the arm {arm.starts_from} keeps none; "
            "set finetune_from=task_best there, or leave init.task out"
        )


def _check_replayed(arm: PlannedArm, source: PlannedArm) -> None:
    """As much as can be told before a run: the numbers of updates only where both arms set them."""
    if "joint" not in source.config.stages:
        raise ConfigError(f"sampling.from replays a joint stage, and the arm {arm.replays} has none")
    differing = sorted(set(arm.trained) ^ set(source.trained))
    if differing:
        raise ConfigError(
            f"it replays the arm {arm.replays}, and only one of them trains {', '.join(differing)}; give both the same "
            "tasks"
        )
    here, there = (resolve_stage(each.config, "joint", None).training for each in (arm, source))
    for setting in ("rows_per_update", "tokens_per_update"):
        own, recorded = getattr(here, setting), getattr(there, setting)
        if own != recorded:
            own, recorded = ("not set" if value is None else value for value in (own, recorded))
            raise ConfigError(
                f"it replays the arm {arm.replays}, whose joint training.{setting} is {recorded} where its own is "
                f"{own}; counts are replayed as they were, so set it alike"
            )
    if here.updates is not None and there.updates is not None and here.updates > there.updates:
        raise ConfigError(
            f"it replays the {there.updates:,} joint updates of the arm {arm.replays}, and takes {here.updates:,}; set "
            "joint.training.updates to that or less"
        )
