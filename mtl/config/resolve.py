"""The settings of one trained model: those of the run, changed by its stage, changed by its task."""

from collections.abc import Mapping
from typing import Any

from mtl.config.encoder import HeadSettings
from mtl.config.merge import merge
from mtl.config.run import RunConfig, Stage, StageSettings


def resolve_stage(config: RunConfig, stage: Stage, task: str | None) -> StageSettings:
    """What holds for ``task`` in ``stage``: base, then the stage's block, then the task's override.

    In a joint stage ``task`` is None, and task overrides do not apply; their heads are given by :func:`resolve_head`.
    Raises pydantic.ValidationError where a block of a config not made by ``load_config`` is invalid.
    """
    document = merge(base_document(config), getattr(config, stage))
    return StageSettings.model_validate(merge(document, _override(config, task)))


def resolve_head(config: RunConfig, stage: Stage, task: str) -> HeadSettings:
    """The head of ``task`` in ``stage``, joint or not: base, then the stage's block, then the task's override."""
    own = {"head": head} if (head := _override(config, task).get("head")) is not None else {}
    document = merge(base_document(config), getattr(config, stage))
    return StageSettings.model_validate(merge(document, own)).head


def base_document(config: RunConfig) -> dict[str, Any]:
    """The settings common to all stages and tasks, as plain data."""
    return config.model_dump(include=set(StageSettings.model_fields))


def _override(config: RunConfig, task: str | None) -> Mapping[str, Any]:
    return {} if task is None else config.task_overrides.get(task, {})
