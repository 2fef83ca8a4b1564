"""A user's own task: a few lines of YAML over files or a hub data set become a ``TaskSpec``."""

import difflib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from mtl.config.settings import Settings
from mtl.config.task_files import ORIGIN
from mtl.errors import ConfigError
from mtl.tasks.spec import MetricName, Reader, SplitSpec, TaskName, TaskSpec

Format = Literal["csv", "tsv", "jsonl", "parquet"]

_FORMATS: Final[dict[str, Format]] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
_NO_DEV: Final = (
    "names no dev split, which the task is scored on; none is cut out of train unasked, so split the file and name "
    "both parts: {train: ..., dev: ...}"
)


class HubDefinition(Settings):
    """A data set of the Hugging Face hub: ``splits`` maps our split names to the data set's."""

    path: str = Field(min_length=1)
    config: str | None = None
    splits: dict[str, str] = Field(default={"train": "train", "dev": "validation"})


class TaskDefinition(Settings):
    """What a task file may say. Either ``files`` or ``hub``; either ``labels`` or ``score_range``.

    ``files`` and ``hub.splits`` go by split: ``train`` is trained on, every split that begins with ``dev`` is scored,
    others, such as ``test``, can be predicted. ``labels`` are the names as they stand in the label column, in the order
    of the head's outputs, or a mapping from what stands there to the names. With ``scored_by`` the task is only
    evaluated, by that task's head.
    """

    name: TaskName
    files: dict[str, str] | None = None
    format: Format | None = None
    hub: HubDefinition | None = None
    texts: tuple[str, ...] = Field(min_length=1, max_length=2)
    label: str = "label"
    labels: tuple[str, ...] | dict[str, str] | None = None
    score_range: tuple[float, float] | None = None
    metrics: tuple[MetricName, ...] | None = None
    primary: tuple[MetricName, ...] | None = None
    positive: str | None = None
    unlabelled: tuple[str, ...] = ()
    evaluate_only: bool = False
    scored_by: str | None = None
    label_map: dict[str, str] = Field(default={})
    version: int = 1
    defined_in: str

    @model_validator(mode="after")
    def _one_of_each_pair(self) -> Self:
        if (self.files is None) == (self.hub is None):
            raise ValueError("set exactly one of files and hub")
        if (self.labels is None) == (self.score_range is None):
            raise ValueError("set exactly one of labels (classification) and score_range (regression)")
        if self.evaluate_only and self.scored_by is None:
            raise ValueError("evaluate_only needs scored_by, the task whose head it is scored with")
        if self.score_range is not None and not self.score_range[0] < self.score_range[1]:
            raise ValueError("score_range is [lowest, highest]")
        stray = sorted(set(self.unlabelled) - set(self.split_sources))
        if stray:
            raise ValueError(f"unlabelled names splits that there are not: {', '.join(stray)}")
        return self

    @property
    def split_sources(self) -> dict[str, str]:
        """The file of each split, or the hub's name of it."""
        return (self.files or {}) if self.hub is None else self.hub.splits


def define_task(definition: Mapping[str, Any]) -> TaskSpec:
    """The task that a definition (a task file's content, or an entry of a config's ``tasks``) describes.

    Raises one ConfigError that names the file and every key that is wrong, with the nearest known key.
    """
    origin = str(definition.get(ORIGIN, "the definition of a task"))
    try:
        return _spec(TaskDefinition.model_validate({ORIGIN: origin, **definition}))
    except ValidationError as error:
        problems = _problems(error)
        raise ConfigError(f"{origin}: the task is not valid:\n" + "\n".join(f"  {line}" for line in problems)) from None
    except ValueError as error:
        raise ConfigError(f"{origin}: {error}") from None


def spec_fingerprint(spec: TaskSpec) -> str:
    """The sha256 of what a task is, wherever its files lie: of runs that differ in it, none continues another."""
    document = spec.model_dump(mode="json", exclude={"files_root", "directory", "reader", "hub"})
    for part in document["splits"].values():
        del part["file"], part["hub"]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _spec(given: TaskDefinition) -> TaskSpec:
    sources = given.split_sources
    dev = tuple(split for split in sources if split.startswith("dev"))
    where = "files" if given.hub is None else "hub.splits"
    if not dev:
        raise ValueError(f"{where}: {_NO_DEV}")
    if "train" not in sources and given.scored_by is None:
        raise ValueError(f"{where}: names no train split; a task that is only evaluated says scored_by: SUITE/TASK")
    classes = given.labels if isinstance(given.labels, dict) else {name: name for name in given.labels or ()}
    usual: tuple[MetricName, ...] = ("pearson", "spearman") if given.labels is None else ("accuracy",)
    metrics = usual if given.metrics is None else given.metrics
    labels = tuple(dict.fromkeys(classes.values()))
    if isinstance(given.labels, tuple) and len(given.labels) != len(labels):
        raise ValueError(f"labels: a name stands twice in {', '.join(given.labels)}")
    return TaskSpec(
        name=given.name,
        kind="regression" if given.labels is None else "classification",
        reader=_reader(given),
        directory="",
        text_columns=given.texts,
        label_column=given.label,
        labels=labels,
        label_values=classes if isinstance(given.labels, dict) else {},
        positive_label=_positive(given, metrics, labels),
        score_range=given.score_range,
        metrics=metrics,
        primary=metrics if given.primary is None else given.primary,
        splits={split: _split(given, split, source) for split, source in sources.items()},
        dev_splits=dev,
        evaluate_only=given.scored_by is not None,
        scored_by=given.scored_by,
        label_map=given.label_map,
        files_root=str(Path(given.defined_in).parent),
        hub=None if given.hub is None else (given.hub.path, given.hub.config),
        version=given.version,
    )


def _split(given: TaskDefinition, split: str, source: str) -> SplitSpec:
    if not source or "\0" in source or not split.replace("_", "").replace("-", "").isalnum() or len(split) > 64:
        raise ValueError(f"{'files' if given.hub is None else 'hub.splits'}: {split!r}: {source!r} cannot be a split")
    labelled = split not in given.unlabelled
    if given.hub is None:
        return SplitSpec(file=source, labelled=labelled)
    return SplitSpec(file="", hub=source, labelled=labelled)


def _reader(given: TaskDefinition) -> Reader:
    """The format named, else the one that all files' endings agree on."""
    if given.hub is not None:
        return "hub"
    if given.format is not None:
        return given.format
    found = {_FORMATS.get(Path(file).suffix.lower()) for file in given.split_sources.values()}
    (chosen, *others) = found
    if chosen is None or others:
        raise ValueError(
            f"files: cannot tell one format from the endings of {', '.join(given.split_sources.values())}; "
            f"they end in {', '.join(_FORMATS)}, or format says which it is"
        )
    return chosen


def _positive(given: TaskDefinition, metrics: tuple[MetricName, ...], labels: tuple[str, ...]) -> str | None:
    if "f1" in metrics and given.positive not in labels:
        raise ValueError(f"positive: f1 needs the label it counts as positive, one of {', '.join(labels)}")
    if given.positive is not None and given.positive not in labels:
        raise ValueError(f"positive: {given.positive!r} is none of {', '.join(labels)}")
    return given.positive


def _problems(error: ValidationError) -> list[str]:
    """One line a wrong key: its path, what is wrong, and the nearest known key."""
    lines: dict[str, None] = {}
    for details in error.errors(include_url=False):
        path = [str(part) for part in details["loc"]]
        message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        if details["type"] == "extra_forbidden":
            owner = HubDefinition if path[0] == "hub" and len(path) > 1 else TaskDefinition
            keys = [key for key in owner.model_fields if key != ORIGIN]
            near = difflib.get_close_matches(path[-1], keys, n=1)
            message = f"unknown key; did you mean {near[0]}?" if near else f"unknown key; known are {', '.join(keys)}"
        elif details["type"] == "missing":
            message = "is not set"
        elif details["type"] == "tuple_type":
            message = f"must be a list; write [{details['input']}]"
        elif details["type"] == "string_pattern_mismatch":
            message = (
                f"{details['input']!r:.80} is no name; write SUITE/TASK of letters, digits and . _ -, 64 at most each"
            )
        lines[f"{'.'.join(path) or 'task'}: {message}"] = None
    return list(lines)
