"""Predictions of a finished run's models for any split, also one without labels."""

import logging
from collections.abc import Sequence
from pathlib import Path

from mtl.config.run import Stage
from mtl.data.store import TokenStore
from mtl.errors import ConfigError, DataError
from mtl.evaluation.evaluate import SplitPredictions
from mtl.evaluation.label_map import read_by
from mtl.evaluation.predictions import write_predictions
from mtl.runtime.precision import Precision
from mtl.stages.open_run import OpenedModel, OpenedRun, has_split, head_task, matching_splits, open_run
from mtl.tasks.spec import TaskSpec

logger = logging.getLogger("mtl")


def predict_run(
    path: Path,
    *,
    stage: Stage = "joint",
    tasks: Sequence[str] = (),
    split: str = "test",
    out: Path | None = None,
    precision: Precision | None = None,
) -> dict[str, dict[str, Path]]:
    """Write a Parquet file for every split of the tasks that is called ``split``; the files by task and split.

    They go below ``out``, one a split as ``<suite>/<task>/<split>.parquet``, by default to the stage's own place for
    predictions. Columns as :func:`mtl.evaluation.predictions.write_predictions` says; logits are those of the head, in
    the order of its own labels. ``precision`` is that of the training by default; fp32 is what an exported model
    computes in. Nothing is computed where rows are missing: DataError names all of them.
    """
    if out is None and precision is not None:
        raise ConfigError("predictions in another precision than the run's do not belong into it: name another place")
    if out is not None and out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file, and predictions need a directory")
    with open_run(path, precision=precision) as opened:
        wanted = [(spec, matching_splits(spec, split)) for spec in _chosen(opened, tasks, split)]
        _refuse_missing(opened, [(spec, part) for spec, parts in wanted for part in parts])
        files: dict[str, dict[str, Path]] = {}
        for spec, parts in wanted:
            model = opened.open_model(stage, head_task(spec))
            files[spec.name] = {}
            for part in parts:
                predicted = predict_split(model, spec, opened.store(spec, part, model.directory))
                target = _target(opened, stage, spec, part) if out is None else _below(out, spec, part)
                write_predictions(target, spec, predicted)
                files[spec.name][part] = target
    return files


def predict_split(model: OpenedModel, spec: TaskSpec, store: TokenStore) -> SplitPredictions:
    """What the model says about all rows of ``store``, in their order, in the labels of ``spec``.

    A task that is only evaluated is read by another task's head, whose answers are mapped to its labels.
    """
    return read_by(model.spec, spec, model.evaluator.predict(model.model, model.spec, store))


def _chosen(opened: OpenedRun, patterns: Sequence[str], split: str) -> Sequence[TaskSpec]:
    """The tasks asked for; where none is named, those of the run that have the split, the others told."""
    specs = opened.choose(patterns)
    if patterns:
        return specs
    having = [spec for spec in specs if has_split(spec, split)]
    lacking = ", ".join(spec.name for spec in specs if spec not in having)
    if lacking and having:
        logger.warning("no predictions for %s, which have no split %s", lacking, split)
    return having or specs


def _refuse_missing(opened: OpenedRun, wanted: Sequence[tuple[TaskSpec, str]]) -> None:
    missing = [f"{spec.name} {split}" for spec, split in wanted if opened.missing_rows(spec, split)]
    if missing:
        raise DataError(
            f"there are no rows of {', '.join(missing)}: set data.root (or MTL_DATA_DIR) to a folder that holds them, "
            "or choose among the other tasks with --task. `mtl tasks` says where files belong"
        )


def _target(opened: OpenedRun, stage: Stage, spec: TaskSpec, split: str) -> Path:
    return opened.stage_directory(stage, head_task(spec)).predictions(spec.name, split)


def _below(out: Path, spec: TaskSpec, split: str) -> Path:
    return out.joinpath(*spec.name.split("/"), f"{split}.parquet")
