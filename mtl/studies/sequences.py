"""Which tasks a training drew, update by update, as the run kept it."""

from mtl.data.task_sequence import TaskSequence, read_sequence
from mtl.records import StageName
from mtl.studies.find import FoundRun
from mtl.studies.scored_arms import Arm
from mtl.tasks import registry


def sequences(arm: Arm, run: FoundRun, task: str) -> list[TaskSequence | None]:
    """Of each training in the run, of each of its folds, that led to the arm's scores of ``task``, in order.

    None for one that kept none.
    """
    stages: list[StageName] = [arm.stage]
    if arm.stage == "finetune" and "joint" in arm.record(run).cost.inherited:
        stages.insert(0, "joint")
    return [_read(part, stage, task) for part in run.parts for stage in stages]


def _read(run: FoundRun, stage: StageName, task: str) -> TaskSequence | None:
    trained = (registry.get(task).scored_by or task) if task in registry.names() else task
    path = run.directory.stage(stage, None if stage == "joint" else trained).sequence
    return read_sequence(path) if path.is_file() else None
