"""All runs of a study, each with its settings, its identity and its place: a function of the study and its recipes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtl import tasks as task_registry
from mtl.config.hashes import identity
from mtl.config.load import read_document, validate_config
from mtl.config.run import RunConfig
from mtl.config.task_files import ORIGIN, identity_of_tasks
from mtl.errors import ConfigError
from mtl.stages.checks import check_config
from mtl.studies.arms import arms_of
from mtl.studies.spec import StudySpec
from mtl.tasks.registry import split_roles

ARM_REFERENCE = "arm:"
"""``init.from: arm:NAME`` starts a run from the run of that arm with the same seed."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study.

    ``arms`` are all that it belongs to: arms whose runs would be equal share one, which lies under the first of them.
    ``identity`` is a SHA-256 of all that can change its result but the content of data and weights, which nobody has
    read yet. ``waits_for`` is the directory of the run that it starts from.
    """

    arms: tuple[str, ...]
    seed: int
    config: RunConfig
    identity: str
    directory: Path
    waits_for: Path | None = None

    @property
    def title(self) -> str:
        """How it is called in messages."""
        return f"{self.arms[0]}, seed {self.seed}"


def expand(study: StudySpec, out: Path) -> tuple[PlannedRun, ...]:
    """Every run of ``study``, arms in its order and seeds within, in directories below ``out``.

    Reads the recipes that the study names and nothing else. Two arms share a run only where its identity, its data root
    and the origin of its tasks are equal. Raises ConfigError for settings that cannot be meant, naming the arm.
    """
    return _Expansion(study, out).runs()


def stages_before_arms(study: StudySpec) -> Sequence[str]:
    """The stages that the study's recipes and overrides come to."""
    stages: Any = read_document(study.base, [study.overrides]).get("stages")
    return list(stages) if isinstance(stages, list) else []


@dataclass(frozen=True)
class _Arm:
    config: RunConfig
    tasks: tuple[str, ...]
    source: str | None
    """The arm that its runs start from."""


class _Expansion:
    def __init__(self, study: StudySpec, out: Path) -> None:
        self._study, self._out = study, out
        self._arms = {
            name: _make_arm(study, name, document)
            for name, document in arms_of(study, stages_before_arms(study)).items()
        }
        self._order = self._sources_first()
        _check_sources(self._arms)
        _check_comparison(study, self._arms)
        self._planned: dict[tuple[str, int], PlannedRun] = {}
        self._owners: dict[tuple[Any, ...], tuple[str, int]] = {}

    def runs(self) -> tuple[PlannedRun, ...]:
        for name in self._order:
            for seed in self._study.seeds:
                self._plan(name, seed)
        ordered = [self._planned[name, seed] for name in self._arms for seed in self._study.seeds]
        return tuple({run.directory: run for run in ordered}.values())

    def _sources_first(self) -> list[str]:
        """The arms in their order, but each after the one it starts from."""
        order: dict[str, None] = {}

        def place(name: str, waiting: tuple[str, ...]) -> None:
            if name in waiting:
                circle = " -> ".join((*waiting[waiting.index(name) :], name))
                raise ConfigError(f"init.from leads in a circle: {circle}; let one of these arms start from elsewhere")
            source = self._arms[name].source
            if source is not None:
                if source not in self._arms:
                    raise ConfigError(
                        f"arm {name}: init.from names the arm {source}, which the study does not have; it has "
                        f"{', '.join(self._arms)}"
                    )
                place(source, (*waiting, name))
            order[name] = None

        for name in self._arms:
            place(name, ())
        return list(order)

    def _plan(self, name: str, seed: int) -> None:
        arm = self._arms[name]
        source = None if arm.source is None else self._planned[arm.source, seed]
        config = arm.config.model_copy(update={"seed": seed})
        digest = _identity(config, arm.tasks, None if source is None else source.identity)
        owner = self._owners.setdefault((digest, *places(config)), (name, seed))
        if owner != (name, seed):
            shared = self._planned[owner]
            shared = PlannedRun((*shared.arms, name), seed, shared.config, digest, shared.directory, shared.waits_for)
            for member in shared.arms:
                self._planned[member, seed] = shared
            return
        directory = self._out / "runs" / name / f"seed-{seed}-{digest[:8]}"
        changes: dict[str, Any] = {"out": str(directory)}
        if source is not None:
            changes["init"] = config.init.model_copy(update={"from_": str(source.directory)})
        planned = config.model_copy(update=changes)
        waits_for = None if source is None else source.directory
        self._planned[name, seed] = PlannedRun((name,), seed, planned, digest, directory, waits_for)


def _make_arm(study: StudySpec, name: str, document: Mapping[str, Any]) -> _Arm:
    try:
        config = validate_config(read_document(study.base, [study.overrides, document]))
        tasks = task_registry.expand(config.tasks)
        check_config(config, tasks)
    except ConfigError as error:
        raise ConfigError(f"arm {name}: {error}") from error
    start = config.init.from_
    source = start.removeprefix(ARM_REFERENCE) if start is not None and start.startswith(ARM_REFERENCE) else None
    return _Arm(config, tasks, source)


def _check_sources(arms: Mapping[str, _Arm]) -> None:
    """What an arm starts from is a model that its source trains."""
    for name, arm in arms.items():
        if arm.source is None:
            continue
        source, init = arms[arm.source], arm.config.init
        if init.stage not in source.config.stages:
            raise ConfigError(
                f"arm {name}: init.stage is {init.stage}, but the arm {arm.source} has only the stages "
                f"{list(source.config.stages)}"
            )
        wanted = split_roles(arm.tasks)[0] if init.by_task else () if init.task is None else (init.task,)
        missing = sorted(set(wanted) - set(split_roles(source.tasks)[0]))
        if missing:
            raise ConfigError(
                f"arm {name}: it starts from models of {', '.join(missing)}, which the arm {arm.source} does not train"
            )


def _check_comparison(study: StudySpec, arms: Mapping[str, _Arm]) -> None:
    """Baseline and primary comparison name arms that there are, and scores that these will have."""
    known = f"the study has {', '.join(arms)}"
    if study.baseline is not None and study.baseline not in arms:
        raise ConfigError(f"baseline: there is no arm {study.baseline}; {known}")
    primary = study.primary
    if primary is None or study.baseline is None:
        return
    if primary.arm not in arms:
        raise ConfigError(f"primary.arm: there is no arm {primary.arm}; {known}")
    sides = ((primary.arm, primary.stage), (study.baseline, primary.baseline_stage or primary.stage))
    for name, stage in sides:
        arm = arms[name]
        if stage not in arm.config.stages:
            hint = "; set primary.baseline_stage" if name == study.baseline else ""
            raise ConfigError(f"primary: the arm {name} has no stage {stage}, only {list(arm.config.stages)}{hint}")
        suites = sorted({task.split("/")[0] for task in arm.tasks})
        if primary.score not in (*arm.tasks, *suites):
            raise ConfigError(
                f"primary.score: the arm {name} has no score {primary.score}; it has {', '.join((*suites, *arm.tasks))}"
            )


def _identity(config: RunConfig, tasks: Sequence[str], source: str | None) -> str:
    document = identity(config, tasks)
    document["definitions"] = identity_of_tasks(config.tasks).get("definitions", {})
    # Where a run starts from is no part of its settings' identity: elsewhere the weights themselves are hashed.
    document["starts_from"] = config.init.from_ if source is None else source
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def places(config: RunConfig) -> tuple[Any, ...]:
    """Where a run reads from: runs of equal identity are equal only on the same files."""
    defined = tuple(str(entry.get(ORIGIN)) for entry in config.tasks if not isinstance(entry, str))
    return (config.data.root, defined)
