"""What makes two runs the same: identity documents, their hashes, and where two of them differ."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig, Stage, StageSettings
from mtl.config.settings import identity_document
from mtl.config.task_files import identity_of_tasks

# Settings of ``data`` that came later: unused they are no part of an identity, so that older runs keep theirs.
_UNUSED: dict[str, Any] = {"fraction": None, "max_dev_rows": None, "shuffled_labels": []}
_BLOCKS = ("single", "joint", "finetune", "task_overrides")


def identity(config: RunConfig, tasks: Sequence[str] = ()) -> dict[str, Any]:
    """All that can change a result, as plain JSON data; equal for configs that only spell the same thing differently.

    ``tasks`` are the names that ``config.tasks`` stands for. Instead of stage blocks and task overrides there is, for
    each stage that runs, what they come to: for each task, or for all tasks jointly and the head of each.
    """
    document = identity_document(config)
    for name in (*StageSettings.model_fields, *_BLOCKS):
        document.pop(name)
    if config.splits.kfold is None:
        # Runs made before there were folds are still the same.
        document.pop("splits")
    for name, unused in _UNUSED.items():
        if document["data"][name] == unused:
            document["data"].pop(name)
    if tasks:
        document["tasks"] = list(tasks)
    else:
        document |= identity_of_tasks(config.tasks)
    document["resolved"] = {stage: _resolved(config, stage, tasks) for stage in config.stages}
    return document


def arm_hash(
    config: RunConfig, *, tasks: Sequence[str], data_fingerprints: Mapping[str, str], encoder_hash: str
) -> str:
    """SHA-256, in hexadecimal, of everything but the seed, and which fold is held out, that can change a result.

    ``data_fingerprints`` are of the tasks' rows, and of what a task defined by the user is; ``encoder_hash`` of the
    weights that are started from.
    """
    settings = identity(config, tasks)
    settings.pop("seed")
    if config.splits.kfold is not None:
        settings["splits"].pop("fold")
    if config.finetune_from == "selected":
        # What every run did before there was a choice: their arms are still the same.
        settings.pop("finetune_from")
    return _sha256({"settings": settings, "data": dict(data_fingerprints), "encoder": encoder_hash})


def run_hash(arm: str, seed: int, fold: int | None = None) -> str:
    """SHA-256, in hexadecimal, of an arm's hash, the seed, and the fold that is held out, if one is."""
    return _sha256({"arm": arm, "seed": seed} | ({} if fold is None else {"fold": fold}))


def difference(config_a: RunConfig, config_b: RunConfig) -> list[str]:
    """The identity settings that differ, as lines such as ``training.updates: 400 -> 500``; empty where none does.

    A setting that changes alike in all stages is named without its stage.
    """
    lines = list(_changes(_common(config_a), _common(config_b)))
    tasks = sorted({*config_a.task_overrides, *config_b.task_overrides})
    stages = [stage for stage in config_a.stages if stage in config_b.stages]
    by_stage = {stage: _stage_changes(config_a, config_b, stage, None) for stage in stages}
    everywhere = [line for line in by_stage[stages[0]] if all(line in by_stage[s] for s in stages)] if stages else []
    lines += everywhere
    for stage in stages:
        lines += [f"{stage}.{line}" for line in by_stage[stage] if line not in everywhere]
    for task in tasks:
        found = [
            f"task_overrides.{task}.{line}"
            for stage in stages
            for line in _stage_changes(config_a, config_b, stage, task)
            if line not in by_stage[stage]
        ]
        lines += dict.fromkeys(found)
    return lines


def _resolved(config: RunConfig, stage: Stage, tasks: Sequence[str]) -> dict[str, Any]:
    if not tasks:
        return identity_document(resolve_stage(config, stage, None))
    if stage != "joint":
        return {task: identity_document(resolve_stage(config, stage, task)) for task in tasks}
    document = identity_document(resolve_stage(config, stage, None))
    document["head"] = {task: identity_document(resolve_head(config, stage, task)) for task in tasks}
    return document


def _sha256(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _common(config: RunConfig) -> dict[str, Any]:
    return {key: value for key, value in identity(config).items() if key != "resolved"}


def _stage_changes(config_a: RunConfig, config_b: RunConfig, stage: Stage, task: str | None) -> list[str]:
    return list(_changes(_scope(config_a, stage, task), _scope(config_b, stage, task)))


def _scope(config: RunConfig, stage: Stage, task: str | None) -> dict[str, Any]:
    """What holds in a stage for all tasks, or for one."""
    if task is not None and stage == "joint":
        return {"head": identity_document(resolve_head(config, stage, task))}
    return identity_document(resolve_stage(config, stage, task))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], *parents: str) -> Iterator[str]:
    """One line for each leaf that differs; a key that only one side has is ``not set`` on the other."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key, "not set"), after.get(key, "not set")
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changes(old, new, *parents, key)
        elif old != new:
            yield f"{'.'.join((*parents, key))}: {_shown(old)} -> {_shown(new)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
