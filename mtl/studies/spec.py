"""What a study is: which runs with which seeds, the question they answer, and the one comparison that answers it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from mtl.config.documents import read_yaml
from mtl.config.merge import merge
from mtl.config.overrides import dropped, is_lost, unset_in_vain
from mtl.config.problems import describe_problems
from mtl.config.run import Stage
from mtl.config.settings import Settings, execution
from mtl.config.task_files import anchored
from mtl.config.values import nested, parse_assignment, parse_path
from mtl.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=,-]{0,99}")
_MOST_SEEDS = 1000
# What a study decides itself for each of its runs.
_OWN_KEYS = {
    "seed": "seeds of the study",
    "out": "--out, which every run has a directory below",
    "splits": "folds of the study",
}

Equal = Literal["updates", "total_tokens", "target_examples", "none"]
Document = dict[str, Any]


def check_name(name: str) -> str:
    """``name``, where it can be part of a path and of a sentence; ValueError otherwise."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise ValueError(
            f"{name!r} cannot be a name: use 1 to 100 letters, digits or ._+=,- beginning with a letter or digit"
        )
    return name


def _as_seeds(value: object) -> object:
    """A number stands for that many seeds, from 1 on."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, int):
        if not 1 <= value <= _MOST_SEEDS:
            raise ValueError(f"{value} is no number of seeds; write 1 to {_MOST_SEEDS}, or a list such as [11, 12, 13]")
        return list(range(1, value + 1))
    return value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, AfterValidator(check_name)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_as_seeds), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class PrimaryComparison(Settings):
    """The one comparison that the study was made for: ``arm`` against the baseline, by one score of one stage.

    ``score`` is a task or a suite. ``baseline_stage`` is the baseline's, where it is another than the arm's.
    """

    arm: str
    stage: Stage = "joint"
    score: str
    baseline_stage: Stage | None = None


class SlurmSettings(Settings):
    """What a job of the cluster asks for. ``gres`` as in ``gpu:1``; ``setup`` are lines of shell before the job."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    gres: str | None = None
    cpus: int | None = Field(default=None, ge=1)
    memory_gb: float | None = Field(default=None, gt=0)
    minutes: int = Field(default=240, ge=5)
    """A job's time limit; a minute and a half before it, its run is told to save itself."""
    runs_per_job: int = Field(default=1, ge=1)
    at_once: int = Field(default=256, ge=1)
    """Jobs of the array that may run at the same time."""
    requeues: int = Field(default=20, ge=0)
    """How often a job that ran out of its time is put back into the queue."""
    setup: Names = ()


class StudySpec(Settings):
    """A study: its arms, directly or as a grid or by a generator, each run with every seed.

    ``overrides`` and each arm are documents of settings, merged over the ``base`` recipes in this order. A grid's arms
    are all combinations of its values; ``pairwise`` trains every pair of the tasks jointly and each of them alone;
    ``leave_one_out`` trains all the tasks, and all but each. ``equal`` says what the arms spend alike. Without
    ``primary`` a study is exploratory.
    """

    name: Name
    question: str = Field(min_length=1)
    base: Annotated[Names, Field(min_length=1)]
    overrides: Document = Field(default_factory=dict)
    arms: Annotated[dict[Name, Document], Field(min_length=1)] | None = None
    grid: Annotated[dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]], Field(min_length=1)] | None = None
    pairwise: Annotated[Names, Field(min_length=1)] | None = None
    leave_one_out: Annotated[Names, Field(min_length=1)] | None = None
    seeds: Seeds
    folds: int | None = Field(default=None, ge=2, le=100)
    """Each arm and seed is run once for each fold (``splits.kfold``), and the folds' predictions are scored as one."""
    equal: Equal = "none"
    baseline: str | None = None
    primary: PrimaryComparison | None = None
    slurm: SlurmSettings = execution(SlurmSettings())

    @model_validator(mode="after")
    def _whole(self) -> Self:
        ways = [name for name in ("arms", "grid", "pairwise", "leave_one_out") if getattr(self, name) is not None]
        if len(ways) != 1:
            found = " and ".join(ways) or "none of them"
            raise ValueError(f"a study has exactly one of arms, grid, pairwise and leave_one_out; this has {found}")
        twice = sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1})
        if twice:
            raise ValueError(f"seeds names {', '.join(map(str, twice))} twice; one run more of a seed is the same run")
        if self.primary is not None and self.baseline is None:
            raise ValueError("primary compares an arm with the baseline, but no baseline is set; name an arm in it")
        if self.primary is not None and self.primary.arm == self.baseline:
            raise ValueError(f"primary compares {self.baseline} with itself, the baseline; name another arm")
        return self


def read_study(path: Path, overrides: Sequence[str] = ()) -> StudySpec:
    """The study in a YAML file, with ``key=value`` settings added to its ``overrides``.

    Paths in it (recipes of its own, task files) are relative to its folder, and absolute from here on. Raises one
    ConfigError that lists every problem found.
    """
    return validate_study(read_yaml(path), path, overrides)


def validate_study(document: Mapping[str, Any], origin: Path, overrides: Sequence[str] = ()) -> StudySpec:
    """The study that a document means, which was read from ``origin``; errors as of :func:`read_study`."""
    study = dict(document)
    study["overrides"] = _settings(study.get("overrides"), "overrides", origin, overrides)
    if isinstance(study.get("arms"), Mapping):
        study["arms"] = {name: _settings(arm, f"arms.{name}", origin) for name, arm in study["arms"].items()}
    if isinstance(study.get("grid"), Mapping):
        for key in study["grid"]:
            _refuse_own_keys([parse_path(key, f"grid: {key}")[0]], "grid")
    if isinstance(study.get("base"), str | list):
        study["base"] = [_absolute(source, origin) for source in _as_list(study["base"])]  # type: ignore[attr-defined]
    try:
        return StudySpec.model_validate(study)
    except ValidationError as error:
        problems = "\n".join(f"  {problem}" for problem in describe_problems(error, root=StudySpec))
        raise ConfigError(f"{origin} is not a valid study:\n{problems}") from error


def study_text(study: StudySpec) -> str:
    """The study as YAML that :func:`read_study` reads back as the same, wherever it lies."""
    return yaml.safe_dump(study.model_dump(mode="json", exclude_unset=True), sort_keys=False, allow_unicode=True)


def as_document(key: str, value: Any) -> Document:
    """The document that sets one dotted key."""
    return nested(parse_path(key, key), value)


def _settings(value: Any, where: str, origin: Path, assignments: Iterable[str] = ()) -> Any:
    """Settings as one document, from a mapping whose keys may be dotted, or a list of ``key=value``."""
    if isinstance(value, Mapping):
        layers = [as_document(key, item) for key, item in value.items()]
    elif value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        layers = [nested(*parse_assignment(item)) for item in value or ()]
    else:
        raise ConfigError(f"{origin}: {where} must be a list of key=value, or a mapping of keys")
    layers = [anchored(layer, origin) for layer in layers]
    layers += [anchored(nested(*parse_assignment(text)), Path("command line")) for text in assignments]
    document: Document = reduce(merge, layers, {})
    if isinstance(value, Mapping):
        _refuse_replaced_keys(value, layers, where)
    for layer in layers:
        _refuse_lost(layer, document, where)
    _refuse_own_keys(document, where)
    return document


def _refuse_replaced_keys(keys: Mapping[str, Any], layers: Sequence[Document], where: str) -> None:
    """A mapping has no order: none of its keys may replace what another one sets."""
    own = layers[: len(keys)]
    document: Document = reduce(merge, own, {})
    for key, layer in zip(keys, own, strict=True):
        if is_lost(layer, document):
            raise ConfigError(f"{where} sets {key}, and with another key something in its place: leave one out")


def _refuse_lost(layer: Document, document: Document, where: str) -> None:
    for key in dropped(layer, layer, document):
        raise ConfigError(f"{where} sets {key}, and then another kind, which drops it: name the kind first")
    for key in unset_in_vain(layer, document):
        raise ConfigError(
            f"{where} unsets {key}, and sets a part of it afterwards: both are laid over the recipes at once, and the "
            f"rest of what they have in {key} would be back; unset that key by key instead"
        )


def _refuse_own_keys(keys: Iterable[str], where: str) -> None:
    for key, instead in _OWN_KEYS.items():
        if key in keys:
            raise ConfigError(f"{where} sets {key}, which a study sets for each of its runs: use {instead}")


def _absolute(source: Any, origin: Path) -> Any:
    """A recipe's path from the study's folder; the name of a shipped one stays as it is."""
    if not isinstance(source, str) or not source.endswith((".yaml", ".yml")):
        return source
    return str((origin.parent / Path(source).expanduser()).absolute())
