"""Scoring a finished run's model once more, on any labelled split."""

from collections.abc import Sequence
from pathlib import Path

from mtl.config.locations import data_root
from mtl.config.run import Stage
from mtl.data.store import TokenStore
from mtl.data.tags import read_tags
from mtl.errors import ConfigError, DataError
from mtl.evaluation.diagnostics import TagDiagnosis, diagnose
from mtl.evaluation.evaluate import SplitPredictions, score_predictions
from mtl.records import SplitRecord
from mtl.stages.open_run import OpenedModel, OpenedRun, head_task, matching_splits, open_run
from mtl.stages.predict_run import predict_split
from mtl.tasks.spec import TaskSpec


def evaluate_run(
    path: Path, *, stage: Stage = "joint", tasks: Sequence[str] = (), split: str | None = None
) -> dict[str, dict[str, SplitRecord]]:
    """Scores by task and split of the stage's selected weights; ``split`` None is every dev split.

    Runs as the run did: same precision, same batches, so the scores equal those in its result, except that all rows are
    scored where ``data.max_dev_rows`` left some out. DataError where the stage has no weights, or the split no labels.
    """
    scores: dict[str, dict[str, SplitRecord]] = {}
    with open_run(path) as opened:
        for spec in opened.choose(tasks):
            model = opened.open_model(stage, head_task(spec))
            scores[spec.name] = {}
            for part in spec.dev_splits if split is None else matching_splits(spec, split):
                store = _labelled(opened, model, spec, part)
                scores[spec.name][part] = _record(spec, part, predict_split(model, spec, store), store)
    return scores


def diagnose_run(path: Path, task: str, *, stage: Stage = "joint", split: str | None = None) -> TagDiagnosis:
    """R3 of a diagnostic set, whole and by the phenomena its rows are tagged with; ``split`` None is its dev split.

    ConfigError for a task whose rows have no tags.
    """
    with open_run(path) as opened:
        (spec,) = opened.choose([task])
        if not spec.tag_columns:
            raise ConfigError(f"the rows of {task} have no tags, so it is no diagnostic set; such as glue/ax has them")
        part = spec.dev_splits[0] if split is None else split
        model = opened.open_model(stage, head_task(spec))
        store = _labelled(opened, model, spec, part)
        tags = read_tags(spec, part, data_root(opened.config), expected=store.data_fingerprint)
        return diagnose(predict_split(model, spec, store).predictions, store.labels, tags)


def _labelled(opened: OpenedRun, model: OpenedModel, spec: TaskSpec, split: str) -> TokenStore:
    store = opened.store(spec, split, model.directory)
    if not store.labelled:
        raise DataError(f"{spec.name}, split {split}: it has no labels, so it cannot be scored")
    return store


def _record(spec: TaskSpec, split: str, predicted: SplitPredictions, store: TokenStore) -> SplitRecord:
    scores = score_predictions(spec, predicted)
    return SplitRecord(
        metrics=scores.metrics,
        rows=store.rows,
        rows_official=None if store.row_ids is not None else spec.splits[split].official_rows,
        rows_sha256=store.data_fingerprint,
        flags=scores.flags,
    )
