"""How the scores of all runs of a task move together under the draw of examples, from the predictions they saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtl.errors import DataError
from mtl.random_streams import generator
from mtl.studies.find import FoundRun
from mtl.studies.saved_predictions import SavedPredictions, joined_predictions, predictions_path, scored_parts
from mtl.studies.scored_arms import Arm
from mtl.studies.statistics.difference import ExampleDraw
from mtl.studies.statistics.resampling import example_covariance
from mtl.tasks import registry
from mtl.tasks.spec import TaskSpec

_SEED = 0


@dataclass(frozen=True)
class TaskDraw:
    """The covariance (R, R) of primary scores, the run of arm and seed at each ``place``, and the examples of a task.

    ``missing`` says, for each arm and seed that has no place, why.
    """

    covariance: npt.NDArray[np.float64]
    examples: int
    places: Mapping[tuple[str, int], int]
    missing: Mapping[tuple[str, int], str]

    def of(self, runs: Sequence[tuple[str, int]]) -> ExampleDraw | str:
        """The draw of these runs, named by arm and seed, in their order; or why there is none."""
        for run in runs:
            if run in self.missing:
                return self.missing[run]
        places = [self.places[run] for run in runs]
        return ExampleDraw(self.covariance[np.ix_(places, places)], self.examples)


def task_draw(arms: Sequence[Arm], task: str) -> TaskDraw:
    """The draw of all runs of ``arms`` that scored ``task``, on the same rows.

    Splits that the score is a mean of are drawn each by itself. The random stream is the task's own: equal predictions
    give equal numbers, whatever else is in the table. DataError for predictions that are damaged or not of the result.
    """
    runs = [(arm, run) for arm in arms for run in arm.scoring(task)]
    keys = [(arm.name, run.result.seed) for arm, run in runs]
    if task not in registry.names():
        told = f"{task} is not known here, so that its metric is not"
        return TaskDraw(np.zeros((0, 0)), 0, {}, dict.fromkeys(keys, told))
    spec = registry.get(task)
    reasons = {key: _missing(arm, run, spec) for key, (arm, run) in zip(keys, runs, strict=True)}
    missing = {key: reason for key, reason in reasons.items() if reason is not None}
    present = [(key, arm, run) for key, (arm, run) in zip(keys, runs, strict=True) if key not in missing]
    places = {key: place for place, (key, _, _) in enumerate(present)}
    if not present:
        return TaskDraw(np.zeros((0, 0)), 0, places, missing)
    covariance, examples = np.zeros((len(present), len(present))), 0
    for split in spec.dev_splits:
        predictions, labels = _predictions([(arm, run) for _, arm, run in present], spec, split)
        random = generator(_SEED, "examples", task, split)
        covariance += example_covariance(spec, predictions, labels, random) / len(spec.dev_splits) ** 2
        examples += len(labels)
    return TaskDraw(covariance, examples, places, missing)


def _missing(arm: Arm, run: FoundRun, spec: TaskSpec) -> str | None:
    for split in spec.dev_splits:
        for part in scored_parts(run, arm.stage, spec):
            if not predictions_path(part, arm.stage, spec, split).is_file():
                return f"no saved predictions of {spec.name} {split} in {arm.name}, seed {run.result.seed}"
    return None


def _predictions(
    runs: Sequence[tuple[Arm, FoundRun]], spec: TaskSpec, split: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    found: list[SavedPredictions] = []
    for arm, run in runs:
        parts = scored_parts(run, arm.stage, spec)
        saved = joined_predictions(parts, arm.stage, spec, split)
        if found and not (np.array_equal(found[0].rows, saved.rows) and np.array_equal(found[0].labels, saved.labels)):
            path = predictions_path(parts[0], arm.stage, spec, split)
            raise DataError(f"{path} is not of the same examples as the other runs' predictions; run it again")
        found.append(saved)
    return np.stack([saved.predictions for saved in found]), found[0].labels
