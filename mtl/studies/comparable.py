"""Refuses to compare arms whose scores do not mean the same."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from mtl.errors import ConfigError, DataError
from mtl.records import TaskRecord
from mtl.studies.find import FoundRun
from mtl.studies.scored_arms import Arm
from mtl.tasks import registry

Kind = Literal["data", "rows", "metric", "selection"]
ALLOWABLE: tuple[Kind, ...] = ("data", "selection")
"""What may differ if told so. Scores over other rows, or by another metric, are never comparable."""
_MOST_LOOKS = 2
_SHOWN = 10


def check_comparable(arms: Sequence[Arm], baseline: Arm, allowed: Collection[Kind] = ()) -> tuple[str, ...]:
    """What differs between ``baseline`` and the other arms, of the kinds that are ``allowed``, as lines for a reader.

    Differences are those of: the data trained on; the rows scored, and in how many folds; the definition of the score;
    and the selection of the weights (on other data, or with more than twice the looks). One ConfigError lists all that
    is not allowed.
    """
    found = [
        (kind, f"{task}: {told}")
        for arm in arms
        if arm is not baseline
        for task in baseline.tasks
        if task in arm.tasks
        for kind, told in _differences(baseline, arm, task)
    ]
    refused = list(dict.fromkeys((kind, told) for kind, told in found if kind not in allowed))
    if refused:
        lines = [f"\n  {kind}: {told}" for kind, told in refused[:_SHOWN]]
        more = f"\n  and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        kinds = [kind for kind in ALLOWABLE if any(kind == each for each, _ in refused)]
        mend = " and ".join(f"--allow-different {kind}" for kind in kinds)
        never = any(kind not in ALLOWABLE for kind, _ in refused)
        advice = "rows and metric must be the same: score both alike, or leave an arm out; " if never else ""
        advice += f"compare them all the same with {mend}" if kinds else ""
        raise ConfigError(f"these arms cannot be compared:{''.join(lines)}{more}\n{advice.removesuffix('; ')}")
    return tuple(dict.fromkeys(f"differs, as was allowed, in {kind}: {told}" for kind, told in found))


def _differences(baseline: Arm, arm: Arm, task: str) -> Iterator[tuple[Kind, str]]:
    reference = baseline.scoring(task)[0]
    names = f"{baseline.name} and {arm.name}"
    one = baseline.record(reference).tasks[task]
    for run in arm.scoring(task):
        other = arm.record(run).tasks[task]
        if one.kfold != other.kfold:
            # All else that differs follows from it.
            yield "rows", f"{baseline.name} is scored {_division(one)}, {arm.name} {_division(other)}"
            continue
        yield from _data(names, reference, run, one, other, task)
        yield from _scoring(names, one, other, task)
        yield from _selection(baseline.name, arm.name, one, other)


def _division(record: TaskRecord) -> str:
    if record.kfold is None:
        return f"on {' and '.join(record.splits)}"
    return f"on train and dev in {record.kfold} folds"


def _data(
    names: str, reference: FoundRun, run: FoundRun, one: TaskRecord, other: TaskRecord, task: str
) -> Iterator[tuple[Kind, str]]:
    prints = _fingerprint(reference, task), _fingerprint(run, task)
    if None not in prints:
        if prints[0] != prints[1]:
            shown = " and ".join(str(value)[:12] for value in prints)
            yield "data", f"{names} were trained on different files (sha256 {shown})"
    elif one.train_rows != other.train_rows or one.train_rows_official != other.train_rows_official:
        yield (
            "data",
            f"{names} were trained on {one.train_rows} and {other.train_rows} rows, of which files is not known",
        )


def _fingerprint(run: FoundRun, task: str) -> str | None:
    """The checksum of the task's training file, which the run noted; None where it did not."""
    path = run.directory.environment
    if not path.is_file():
        return None
    try:
        noted: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}; run it again") from error
    found = noted.get("data", {}).get(task, {}).get("train", {}).get("sha256")
    return str(found) if found is not None else None


def _scoring(names: str, one: TaskRecord, other: TaskRecord, task: str) -> Iterator[tuple[Kind, str]]:
    if list(one.splits) != list(other.splits):
        yield "rows", f"{names} were scored on the splits {', '.join(one.splits)} and {', '.join(other.splits)}"
        return
    for split, scored in one.splits.items():
        again = other.splits[split]
        if scored.rows_sha256 != again.rows_sha256:
            shown = f"{scored.rows_sha256[:12]} and {again.rows_sha256[:12]}"
            yield "rows", f"{names} were scored on different rows of {split} (sha256 {shown})"
        elif scored.rows != again.rows:
            yield "rows", f"{names} were scored on {scored.rows:,} and {again.rows:,} rows of {split}"
        if set(scored.metrics) != set(again.metrics):
            yield "metric", f"{names} have the metrics {', '.join(scored.metrics)} and {', '.join(again.metrics)}"
    definitions = _definition(one, task), _definition(other, task)
    if definitions[0] != definitions[1]:
        yield "metric", f"the score of {names} is {definitions[0]} and {definitions[1]}"


def _definition(record: TaskRecord, task: str) -> str:
    """What the primary score was computed as."""
    if task in registry.names():
        spec = registry.get(task)
        values = [split.metrics.get(name) for split in record.splits.values() for name in spec.primary]
        known = [value for value in values if value is not None]
        if len(known) == len(values) and abs(sum(known) / len(known) - record.primary) < 1e-6:
            return f"the mean of {', '.join(spec.primary)}"
    return "defined in another way"


def _selection(baseline: str, arm: str, one: TaskRecord, other: TaskRecord) -> Iterator[tuple[Kind, str]]:
    if one.selected_on != other.selected_on:
        yield "selection", f"{baseline} was selected on {one.selected_on}, {arm} on {other.selected_on}"
    elif one.selected_on != "last" and max(one.looks, other.looks) > _MOST_LOOKS * min(one.looks, other.looks):
        yield (
            "selection",
            f"{baseline} was selected with {one.looks} looks at {one.selected_on}, {arm} with {other.looks}",
        )
