"""The known tasks as a list for people: what each is, how it is scored, how large it is, what of it is here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mtl.data.sources import count_rows
from mtl.tasks.registry import get
from mtl.tasks.spec import MetricName, TaskKind, TaskSpec


@dataclass(frozen=True)
class SplitEntry:
    """Rows of one split in the official release (None: not published) and at hand (None: the file is missing)."""

    rows_official: int | None
    rows: int | None


@dataclass(frozen=True)
class TaskEntry:
    """One task. ``splits`` are train where there is one and those it is scored on; ``data``: are they here."""

    name: str
    kind: TaskKind
    labels: tuple[str, ...]
    score_range: tuple[float, float] | None
    metrics: tuple[MetricName, ...]
    primary: tuple[MetricName, ...]
    in_suite_score: bool
    splits: dict[str, SplitEntry]
    data: str


def task_entries(names: Sequence[str], data_root: Path | None) -> list[TaskEntry]:
    """An entry for each of ``names``, in their order; ConfigError for an unknown one."""
    return [_entry(get(name), data_root) for name in names]


def _entry(spec: TaskSpec, data_root: Path | None) -> TaskEntry:
    splits = {
        split: SplitEntry(spec.splits[split].official_rows, count_rows(spec, split, data_root))
        for split in (*(() if spec.evaluate_only else ("train",)), *spec.dev_splits)
    }
    return TaskEntry(
        spec.name,
        spec.kind,
        spec.labels,
        spec.score_range,
        spec.metrics,
        spec.primary,
        spec.in_suite_score,
        splits,
        "generated" if spec.reader == "generated" else _completeness(tuple(splits.values())),
    )


def _completeness(splits: Sequence[SplitEntry]) -> str:
    if all(split.rows is None for split in splits):
        return "missing"
    if any(split.rows is None for split in splits):
        return "some files missing"
    lacking = any(split.rows_official is not None and (split.rows or 0) < split.rows_official for split in splits)
    return "partial" if lacking else "complete"
