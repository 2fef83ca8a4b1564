"""Results as one flat list of scores, for data frames."""

from collections.abc import Sequence
from typing import Any

from mtl.records import CostRecord
from mtl.studies.costs import spent
from mtl.studies.find import FoundRun
from mtl.studies.one_arm import arms_of_results
from mtl.studies.scored_arms import arm_labels
from mtl.tasks import registry

COLUMNS = (
    *("name", "arm", "run", "seed", "status", "partial", "encoder", "known_training_data"),
    *("stage", "task", "split", "metric", "primary", "score", "rows", "rows_official", "kfold", "fold", "flags"),
    *("train_rows", "train_rows_official", "selected_on", "looks", "selected_step"),
    *("updates", "examples", "tokens", "flops", "seconds", "total_tokens", "total_flops"),
)


def score_rows(runs: Sequence[FoundRun]) -> list[dict[str, Any]]:
    """A row, with the keys ``COLUMNS``, for each metric of each split of each task of each stage of each run.

    ``name`` is the arm's, as in tables; ``arm`` and ``run`` are the hashes. Scores are unrounded; primary and suite
    scores are means of rows: ``primary`` says which (None where the task is not known here). Costs are of all models of
    the row's stage, ``total_`` with all that the stage started from.
    ``kfold`` is set where train and dev were divided into so many folds, ``fold`` where one of them alone is scored.
    """
    labels = arm_labels(runs)
    arms = arms_of_results([run.result for run in runs])
    return [
        {
            "name": labels[arm],
            "arm": arm,
            "run": run.result.run_hash,
            "seed": run.result.seed,
            "status": run.result.status,
            "partial": run.result.partial,
            "encoder": run.result.encoder.path,
            "known_training_data": "; ".join(run.result.encoder.known_training_data),
            "stage": stage,
            "task": task,
            "split": split,
            "metric": metric,
            "primary": _is_primary(task, metric),
            "score": score,
            "rows": scored.rows,
            "rows_official": scored.rows_official,
            "kfold": record.kfold,
            "fold": run.result.fold if record.kfold else None,
            "flags": "; ".join(scored.flags),
            "train_rows": record.train_rows,
            "train_rows_official": record.train_rows_official,
            "selected_on": record.selected_on,
            "looks": record.looks,
            "selected_step": record.selected_step,
            **_costs(stage_record.cost),
        }
        for arm, run in zip(arms, runs, strict=True)
        for stage, stage_record in run.result.stages.items()
        for task, record in stage_record.tasks.items()
        for split, scored in record.splits.items()
        for metric, score in scored.metrics.items()
    ]


def _is_primary(task: str, metric: str) -> bool | None:
    return metric in registry.get(task).primary if task in registry.names() else None


def _costs(cost: CostRecord) -> dict[str, float]:
    own = {name: getattr(cost, name) for name in ("updates", "examples", "tokens", "flops", "seconds")}
    parts = list(spent(cost))
    return own | {
        "total_tokens": sum(part.tokens for part in parts),
        "total_flops": sum(part.flops for part in parts),
    }
