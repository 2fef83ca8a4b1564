"""All runs of a study, each with its settings, its identity and its place: a function of the study and its recipes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mtl import tasks as task_registry
from mtl.config.hashes import identity
from mtl.config.load import dropped_overrides, read_document, validate_config
from mtl.config.replayed import replayed_run, with_replayed_run
from mtl.config.run import RunConfig
from mtl.config.splits import SplitSettings
from mtl.config.task_files import ORIGIN, identity_of_tasks
from mtl.errors import ConfigError
from mtl.stages.checks import check_config
from mtl.studies.arm_sources import PlannedArm, check_sources
from mtl.studies.arms import arms_of
from mtl.studies.spec import StudySpec

ARM_REFERENCE = "arm:"
"""``init.from: arm:NAME`` starts a run from the run of that arm with the same seed, and fold; with
``sampling.from: arm:NAME`` it draws what that run drew."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study.

    ``arms`` are all that it belongs to: arms whose runs would be equal share one, which lies under the first of them.
    ``identity`` is a SHA-256 of all that can change its result but the content of data and weights, which nobody has
    read yet. ``fold`` is the one that it holds out, in a study with folds. ``starts_from`` and ``replays`` are the
    directories of the runs whose weights it starts from and whose task sequence it repeats.
    """

    arms: tuple[str, ...]
    seed: int
    config: RunConfig
    identity: str
    directory: Path
    fold: int | None = None
    starts_from: Path | None = None
    replays: Path | None = None

    @property
    def waits_for(self) -> tuple[Path, ...]:
        """The directories of the runs that have to be complete before it can begin."""
        return tuple(dict.fromkeys(path for path in (self.starts_from, self.replays) if path is not None))

    @property
    def repetition(self) -> str:
        """Which of its arm's runs it is, as part of a path."""
        return f"seed-{self.seed}" if self.fold is None else f"seed-{self.seed}-fold-{self.fold}"

    @property
    def title(self) -> str:
        """How it is called in messages."""
        return f"{self.arms[0]}, seed {self.seed}" + ("" if self.fold is None else f", fold {self.fold}")


def expand(study: StudySpec, out: Path) -> tuple[PlannedRun, ...]:
    """Every run of ``study``, arms in its order, seeds within and folds within those, in directories below ``out``.

    Reads the recipes that the study names and nothing else. Two arms share a run only where its identity, its data root
    and the origin of its tasks are equal. Raises ConfigError for settings that cannot be meant, naming the arm.
    """
    return _Expansion(study, out).runs()


def stages_before_arms(study: StudySpec) -> Sequence[str]:
    """The stages that the study's recipes and overrides come to."""
    stages: Any = read_document(study.base, [study.overrides]).get("stages")
    return list(stages) if isinstance(stages, list) else []


_Key = tuple[str, int, int | None]
"""Arm, seed and fold."""


class _Expansion:
    def __init__(self, study: StudySpec, out: Path) -> None:
        self._study, self._out = study, out
        self._arms = {
            name: _make_arm(study, name, document)
            for name, document in arms_of(study, stages_before_arms(study)).items()
        }
        self._order = self._sources_first()
        check_sources(self._arms)
        _check_comparison(study, self._arms)
        self._planned: dict[_Key, PlannedRun] = {}
        self._owners: dict[tuple[Any, ...], _Key] = {}

    def runs(self) -> tuple[PlannedRun, ...]:
        folds: Sequence[int | None] = [None] if self._study.folds is None else range(self._study.folds)
        repetitions = [(seed, fold) for seed in self._study.seeds for fold in folds]
        for name in self._order:
            for seed, fold in repetitions:
                self._plan(name, seed, fold)
        ordered = [self._planned[name, seed, fold] for name in self._arms for seed, fold in repetitions]
        return tuple({run.directory: run for run in ordered}.values())

    def _sources_first(self) -> list[str]:
        """The arms in their order, but each after those it waits for."""
        order: dict[str, None] = {}

        def place(name: str, waiting: tuple[str, ...], setting: str) -> None:
            if name in waiting:
                circle = " -> ".join((*waiting[waiting.index(name) :], name))
                raise ConfigError(f"{setting} leads in a circle: {circle}; let one of these arms start from elsewhere")
            for needs, source in self._arms[name].sources.items():
                if source not in self._arms:
                    raise ConfigError(
                        f"arm {name}: {needs} names the arm {source}, which the study does not have; it has "
                        f"{', '.join(self._arms)}"
                    )
                place(source, (*waiting, name), needs)
            order[name] = None

        for name in self._arms:
            place(name, (), "")
        return list(order)

    def _plan(self, name: str, seed: int, fold: int | None) -> None:
        arm, key = self._arms[name], (name, seed, fold)
        start, replayed = (
            None if source is None else self._planned[source, seed, fold] for source in (arm.starts_from, arm.replays)
        )
        config = _repeated(arm.config, seed, self._study.folds, fold)
        digest = _identity(config, arm.tasks, start, replayed)
        owner = self._owners.setdefault((digest, *places(config)), key)
        if owner != key:
            shared = self._planned[owner]
            shared = replace(shared, arms=(*shared.arms, name))
            for member in shared.arms:
                self._planned[member, seed, fold] = shared
            return
        run = PlannedRun((name,), seed, config, digest, Path(), fold)
        directory = self._out / "runs" / name / f"{run.repetition}-{digest[:8]}"
        changes: dict[str, Any] = {"out": str(directory)}
        if start is not None:
            changes["init"] = config.init.model_copy(update={"from_": str(start.directory)})
        if replayed is not None:
            config = with_replayed_run(config, str(replayed.directory))
        self._planned[key] = replace(
            run,
            config=config.model_copy(update=changes),
            directory=directory,
            starts_from=None if start is None else start.directory,
            replays=None if replayed is None else replayed.directory,
        )


def _make_arm(study: StudySpec, name: str, document: Mapping[str, Any]) -> PlannedArm:
    try:
        layers = [study.overrides, document]
        lost = dropped_overrides(study.base, layers)
        if lost:
            raise ConfigError(f"of the study's overrides, {lost[0]} in the arm")
        config = validate_config(read_document(study.base, layers))
        tasks = task_registry.expand(config.tasks)
        check_config(config, tasks)
        if config.splits.kfold is not None:
            raise ConfigError("splits are set by the study for each of its runs: write folds: K in it instead")
    except ConfigError as error:
        raise ConfigError(f"arm {name}: {error}") from error
    return PlannedArm(config, tasks, _arm_named(config.init.from_), _arm_named(replayed_run(config)))


def _arm_named(source: str | None) -> str | None:
    return source.removeprefix(ARM_REFERENCE) if source is not None and source.startswith(ARM_REFERENCE) else None


def _repeated(config: RunConfig, seed: int, folds: int | None, fold: int | None) -> RunConfig:
    """The settings of one of an arm's runs."""
    changes: dict[str, Any] = {"seed": seed}
    if fold is not None:
        changes["splits"] = SplitSettings(kfold=folds, fold=fold)
    return config.model_copy(update=changes)


def _check_comparison(study: StudySpec, arms: Mapping[str, PlannedArm]) -> None:
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


def _identity(config: RunConfig, tasks: Sequence[str], start: PlannedRun | None, replayed: PlannedRun | None) -> str:
    document = identity(config, tasks)
    document["definitions"] = identity_of_tasks(config.tasks).get("definitions", {})
    # Where a run starts from is no part of its settings' identity: elsewhere the weights themselves are hashed.
    document["starts_from"] = config.init.from_ if start is None else start.identity
    if (recorded := replayed_run(config)) is not None:
        document["replays"] = recorded if replayed is None else replayed.identity
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def places(config: RunConfig) -> tuple[Any, ...]:
    """Where a run reads from: runs of equal identity are equal only on the same files."""
    defined = tuple(str(entry.get(ORIGIN)) for entry in config.tasks if not isinstance(entry, str))
    return (config.data.root, defined)
