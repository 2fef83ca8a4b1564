"""The arms that are compared: runs that differ in their seed only, in one of their stages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mtl.errors import ConfigError
from mtl.records import StageName, StageRecord
from mtl.studies.find import FoundRun, learn_tasks
from mtl.studies.folds import check_pooled
from mtl.studies.one_arm import arms_of_results

# A study adds the first digits of the run's hash.
_SEED_FOLDER = re.compile(r"seed-\d+(-fold-\d+)?(-[0-9a-f]{8})?")
_HASH_LETTERS = 8


@dataclass(frozen=True)
class Arm:
    """One stage of the runs of one arm, in the order of their seeds; ``label`` is its arm's name alone."""

    name: str
    label: str
    stage: StageName
    runs: tuple[FoundRun, ...]

    def record(self, run: FoundRun) -> StageRecord:
        """What ``run`` scored in the arm's stage."""
        return run.result.stages[self.stage]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task that some run scored."""
        return tuple(dict.fromkeys(task for run in self.runs for task in self.record(run).tasks))

    def scoring(self, task: str) -> tuple[FoundRun, ...]:
        """The runs that scored ``task``."""
        return tuple(run for run in self.runs if task in self.record(run).tasks)


def scored_arms(found: Sequence[FoundRun]) -> tuple[Arm, ...]:
    """An arm for each stage of each set of runs that differ in their seed only, in the order in which they first come.

    An arm is called after its folder where its runs lie in ``<arm>/seed-<number>`` (a study adds a hash), else by its
    hash; by its stage alone where all runs are of one arm, and ``label:stage`` where it has several, the one that it is
    called after excepted. Tasks that the runs' configs define are known from here on. ConfigError for a fold
    that is not taken together with the others.
    """
    learn_tasks(found)
    check_pooled(found)
    groups = _groups(found)
    labels = _labels(groups)
    stages = {arm: _stages(runs) for arm, runs in groups.items()}
    arms = []
    for key, runs in groups.items():
        for stage in stages[key]:
            told = len(stages[key]) == 1 or labels[key] == stage
            name = stage if len(groups) == 1 else labels[key] if told else f"{labels[key]}:{stage}"
            having = sorted((run for run in runs if stage in run.result.stages), key=lambda run: run.result.seed)
            arms.append(Arm(name, labels[key], stage, tuple(having)))
    return tuple(arms)


def arm_labels(found: Sequence[FoundRun]) -> dict[str, str]:
    """What each arm is called, by its hash (see :func:`arms_of_results`): as in tables, without a stage."""
    return _labels(_groups(found))


def find_arm(arms: Sequence[Arm], name: str) -> Arm:
    """The arm that ``name`` means: its name, ``label:stage``, or its label where only one stage has that.

    ConfigError that lists the arms where none or several are meant.
    """
    exact = [arm for arm in arms if name in (arm.name, f"{arm.label}:{arm.stage}")]
    meant = exact or [arm for arm in arms if arm.label == name]
    if len(meant) != 1:
        fault = "there is no arm" if not meant else "several stages are of the arm"
        raise ConfigError(f"{fault} {name!r}; there are {', '.join(arm.name for arm in arms)}")
    return meant[0]


def _stages(runs: Sequence[FoundRun]) -> list[StageName]:
    order: tuple[StageName, ...] = ("single", "joint", "finetune")
    return [stage for stage in order if any(stage in run.result.stages for run in runs)]


def _groups(found: Sequence[FoundRun]) -> dict[str, list[FoundRun]]:
    groups: dict[str, list[FoundRun]] = {}
    for arm, run in zip(arms_of_results([run.result for run in found]), found, strict=True):
        groups.setdefault(arm, []).append(run)
    return groups


def _labels(groups: dict[str, list[FoundRun]]) -> dict[str, str]:
    """A name for each arm; two arms never share one."""
    plain = {arm: _folder(runs) or arm[:12] for arm, runs in groups.items()}
    taken = list(plain.values())
    return {arm: name if taken.count(name) == 1 else f"{name} ({arm[:_HASH_LETTERS]})" for arm, name in plain.items()}


def _folder(runs: Sequence[FoundRun]) -> str | None:
    """The folder that holds the folders ``seed-<number>`` of all the runs, by name."""
    paths = [run.directory.path.absolute() for run in runs]
    names = {path.parent.name if _SEED_FOLDER.fullmatch(path.name) else None for path in paths}
    return names.pop() if len(names) == 1 else None
