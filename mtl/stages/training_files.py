"""A training on disk: everything needed to go on exactly, and the weights that other stages start from."""

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mtl.config.training import SelectionSettings
from mtl.errors import DataError
from mtl.rundir import StageDirectory
from mtl.runtime.checkpoint_files import (
    keep_newest,
    load_document,
    load_tensors,
    newest_valid_checkpoint,
    remove_leftovers,
    save_checkpoint,
    step_directory,
    verify_checkpoint,
)
from mtl.stages.build import Parts
from mtl.stages.context import RunContext, Unit
from mtl.stages.models import heads_document, load_weights, model_tensors, write_model_files
from mtl.training.selection import Selection
from mtl.training.totals import Totals
from mtl.training.tracking import LossWindow

logger = logging.getLogger("mtl")


def selected_weights(directory: StageDirectory, selection: SelectionSettings) -> Path:
    """The checkpoint that a finished stage's scores are of; DataError where its training has not ended."""
    last, best = last_weights(directory), directory.checkpoints / "best"
    return best if selection.on != "last" and best.is_dir() else last


def last_weights(directory: StageDirectory) -> Path:
    """The checkpoint at the end of a stage's training; DataError where that has not come."""
    last = directory.checkpoints / "last"
    if not last.is_dir():
        raise DataError(f"no weights at {last}: that stage of this run has not finished; continue it with --resume")
    return last


@dataclass(frozen=True)
class TrainingFiles:
    """Saves and restores one training: ``last`` and ``best`` hold weights, ``step-...`` the optimiser's state too.

    ``task_selections`` are of the tasks that have a best snapshot of their own, in ``best_for/<suite>/<task>``. All
    ranks call its methods together; the first one writes, and all of them read what it chose.
    """

    context: RunContext
    unit: Unit
    parts: Parts
    totals: Totals
    window: LossWindow
    selection: Selection
    task_selections: Mapping[str, Selection]

    def save_step(self, *, log_bytes: int, evaluation_due: bool) -> None:
        """A checkpoint to resume from; older ones beyond the number to keep are deleted once it is safe."""
        parent = self.unit.directory.checkpoints
        state = self._state(log_bytes=log_bytes, evaluation_due=evaluation_due, finished=False)
        tensors = {"optimizer": self.parts.optimizer.state_tensors(), "sequence": self.totals.state_tensors()}
        self._save(step_directory(parent, self.totals.updates), state, tensors)
        if self.context.ranks.first:
            keep_newest(parent, self.context.config.checkpoint.keep)

    def save_last(self, *, log_bytes: int) -> None:
        """The trained weights and the position at the end, without the optimiser's state."""
        state = self._state(log_bytes=log_bytes, evaluation_due=False, finished=True)
        self._save(self.last, state, {"sequence": self.totals.state_tensors()})

    def save_best(self) -> None:
        """The weights that selection likes best so far."""
        self._save(self.best, {"step": self.totals.updates}, {})

    def save_best_for(self, task: str) -> None:
        """The weights, with the heads of all tasks, that are best for one task so far."""
        self._save(self.unit.directory.best_for(task), {"step": self.totals.updates}, {})

    @property
    def last(self) -> Path:
        """Where the weights at the end of training are."""
        return self.unit.directory.checkpoints / "last"

    @property
    def best(self) -> Path:
        """Where the selected weights are, if there is a selection."""
        return self.unit.directory.checkpoints / "best"

    def restore(self) -> Mapping[str, Any] | None:
        """Continue from the newest checkpoint that verifies; its state, or None where there is none.

        Raises DataError where there are checkpoints and all are damaged: starting anew is the user's decision.
        """
        newest = self.context.ranks.decide(self._cleaned_newest)
        if newest is None:
            return None
        return self.context.ranks.together(lambda: self._load(Path(newest)))

    def _load(self, directory: Path) -> Mapping[str, Any]:
        state = cast("Mapping[str, Any]", load_document(directory, "state"))
        if state["tasks"] != list(self.unit.tasks):
            raise DataError(f"{directory} was trained on {state['tasks']}, this run on {list(self.unit.tasks)}")
        load_weights(self.parts.model, directory)
        if not state["finished"]:
            self.parts.optimizer.load_state_tensors(load_tensors(directory, "optimizer"))
        self.parts.updater.weighting.load_state_dict(state["weighting"])
        self.totals.load(state["totals"], load_tensors(directory, "sequence"))
        self.window.load_state_dict(state["window"])
        self.selection.load_state_dict(state["selection"])
        for task, selection in self.task_selections.items():
            selection.load_state_dict(state["task_selections"][task])
        return state

    def _cleaned_newest(self) -> str | None:
        checkpoints = self.unit.directory.checkpoints
        for parent in (checkpoints, *checkpoints.glob("best_for/*")):
            remove_leftovers(parent)
        directory = self._newest()
        return None if directory is None else str(directory)

    def _newest(self) -> Path | None:
        parent = self.unit.directory.checkpoints
        if self.last.is_dir():
            try:
                verify_checkpoint(self.last)
            except DataError as error:
                logger.warning("skipping the weights at the end of training: %s", error)
            else:
                return self.last
        found, steps = newest_valid_checkpoint(parent), sorted(parent.glob("step-*"))
        if found is None and (steps or self.last.is_dir()):
            raise DataError(f"no checkpoint in {parent} is whole; copy one anew, or start again with --overwrite")
        for damaged in steps:
            # They were skipped, and must not count among the newest when older ones are deleted.
            if found is not None and damaged.name > found.name:
                shutil.rmtree(damaged)
        return found

    def _state(self, *, log_bytes: int, evaluation_due: bool, finished: bool) -> dict[str, Any]:
        return {
            "step": self.totals.updates,
            "tasks": list(self.unit.tasks),
            "finished": finished,
            "evaluation_due": evaluation_due,
            "log_bytes": log_bytes,
            "weighting": self.parts.updater.weighting.state_dict(),
            "totals": self.totals.state_dict(),
            "window": self.window.state_dict(),
            "selection": self.selection.state_dict(),
            "task_selections": {task: each.state_dict() for task, each in self.task_selections.items()},
        }

    def _save(self, directory: Path, state: Mapping[str, Any], extra: Mapping[str, Mapping[str, Any]]) -> None:
        specs = [self.context.data[task].spec for task in self.unit.tasks]
        self.context.ranks.first_does(
            lambda: save_checkpoint(
                directory,
                tensors={**model_tensors(self.parts.model), **extra},
                documents={"state": dict(state), "heads": heads_document(specs, self.unit.heads)},
                files=lambda path: write_model_files(path, self.parts.model, self.context.tokenizer),
            )
        )
