"""Results as one flat list of scores, for data frames."""

from collections.abc import Sequence
from typing import Any

from mtl.records import ResultRecord

COLUMNS = (
    "arm",
    "run",
    "seed",
    "status",
    "partial",
    "encoder",
    "stage",
    "task",
    "split",
    "metric",
    "score",
    "rows",
    "rows_official",
    "kfold",
    "fold",
    "selected_on",
    "looks",
    "selected_step",
)


def score_rows(results: Sequence[ResultRecord]) -> list[dict[str, Any]]:
    """A row, with the keys ``COLUMNS``, for each metric of each split of each task of each stage of each result.

    ``kfold`` is set where train and dev were divided into so many folds, ``fold`` where one of them alone is scored.
    ``arm`` and ``run`` are the hashes; scores are unrounded. Primary and suite scores are means of these rows.
    """
    return [
        {
            "arm": result.arm,
            "run": result.run_hash,
            "seed": result.seed,
            "status": result.status,
            "partial": result.partial,
            "encoder": result.encoder.path,
            "stage": stage,
            "task": task,
            "split": split,
            "metric": metric,
            "score": score,
            "rows": scored.rows,
            "rows_official": scored.rows_official,
            "kfold": record.kfold,
            "fold": result.fold if record.kfold else None,
            "selected_on": record.selected_on,
            "looks": record.looks,
            "selected_step": record.selected_step,
        }
        for result in results
        for stage, stage_record in result.stages.items()
        for task, record in stage_record.tasks.items()
        for split, scored in record.splits.items()
        for metric, score in scored.metrics.items()
    ]
