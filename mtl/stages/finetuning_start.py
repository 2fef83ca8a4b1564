"""Which snapshot of a run's joint stage the fine-tuning of a task starts from."""

import logging
from pathlib import Path
from typing import Any

from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig
from mtl.errors import DataError
from mtl.rundir import RunDirectory, StageDirectory
from mtl.runtime.checkpoint_files import load_document, verify_checkpoint
from mtl.stages.training_files import last_weights, selected_weights

logger = logging.getLogger("mtl")


def finetuning_start(run: RunDirectory, config: RunConfig, task: str) -> Path:
    """The checkpoint of the finished joint stage that ``config.finetune_from`` names for ``task``; it is logged.

    Where no snapshot can be the best for the task, as the joint model was not trained on it or no score of it was a
    number, that is the selected one, and the log says why. DataError where weights that should be there are not.
    """
    joint = run.stage("joint")
    if config.finetune_from == "last":
        start = last_weights(joint)
    elif config.finetune_from == "task_best" and _has_best(joint, task):
        start = joint.best_for(task)
        if not start.is_dir():
            raise DataError(
                f"no weights at {start}, where the joint stage left those that were best for {task}; copy them anew, "
                "or start a new run in another out="
            )
    else:
        start = selected_weights(joint, resolve_stage(config, "joint", None).selection)
    logger.info("%s: fine-tuning starts from %s", task, start)
    return start


def _has_best(joint: StageDirectory, task: str) -> bool:
    """Whether a finished joint stage that kept snapshots by task found one that was best for ``task``."""
    last = last_weights(joint)
    verify_checkpoint(last)
    state: Any = load_document(last, "state")
    selection = state["task_selections"].get(task)
    if selection is None:
        logger.info("%s: the joint model was not trained on it, so no snapshot is its best", task)
    elif selection["best_score"] is None:
        logger.warning("%s: none of its scores in the joint stage was a number, so no snapshot is its best", task)
    return selection is not None and selection["best_score"] is not None
