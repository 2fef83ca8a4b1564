"""Which tasks a training drew, update by update, as the run kept it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtl.records import StageName
from mtl.studies.find import FoundRun
from mtl.studies.scored_arms import Arm
from mtl.tasks import registry


@dataclass(frozen=True)
class TaskSequence:
    """The examples (updates, K) of each of ``tasks`` in each update of one training."""

    tasks: tuple[str, ...]
    counts: npt.NDArray[np.int64]

    def equals(self, other: "TaskSequence") -> bool:
        """Whether both drew as many examples of the same tasks in each update."""
        return self.tasks == other.tasks and np.array_equal(self.counts, other.counts)

    def examples(self, task: str) -> int:
        """How many examples of ``task`` were trained on, repeats counted."""
        return int(self.counts[:, self.tasks.index(task)].sum()) if task in self.tasks else 0


def sequences(arm: Arm, run: FoundRun, task: str) -> list[TaskSequence | None]:
    """Of each training in the run that led to the arm's scores of ``task``, in order; None for one that kept none."""
    stages: list[StageName] = [arm.stage]
    if arm.stage == "finetune" and "joint" in arm.record(run).cost.inherited:
        stages.insert(0, "joint")
    return [_read(run, stage, task) for stage in stages]


def _read(run: FoundRun, stage: StageName, task: str) -> TaskSequence | None:
    trained = (registry.get(task).scored_by or task) if task in registry.names() else task
    path = run.directory.stage(stage, None if stage == "joint" else trained).sequence
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return TaskSequence(tuple(str(name) for name in arrays["task_names"]), arrays["counts"])
