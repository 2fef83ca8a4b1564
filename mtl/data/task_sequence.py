"""Which tasks a training drew, update by update, as its run keeps it in ``sequence.npz``."""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mtl.errors import DataError
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class TaskSequence:
    """The examples (updates, K) of each of ``tasks`` in each update of one training."""

    tasks: tuple[str, ...]
    counts: IntArray

    def equals(self, other: "TaskSequence") -> bool:
        """Whether both drew as many examples of the same tasks in each update, in whichever order tasks are named."""
        return sorted(self.tasks) == sorted(other.tasks) and np.array_equal(self.counts, other.of(self.tasks))

    def of(self, tasks: tuple[str, ...]) -> IntArray:
        """The counts with a column for each of ``tasks``, which all have to be here."""
        return self.counts[:, [self.tasks.index(task) for task in tasks]]

    def examples(self, task: str) -> int:
        """How many examples of ``task`` were trained on, repeats counted."""
        return int(self.counts[:, self.tasks.index(task)].sum()) if task in self.tasks else 0

    @property
    def sha256(self) -> str:
        """Hex digest of tasks and counts, the same in whichever order the tasks are named."""
        tasks = tuple(sorted(self.tasks))
        counts = np.ascontiguousarray(self.of(tasks), dtype="<i8")
        return hashlib.sha256(json.dumps([tasks, counts.shape]).encode() + counts.tobytes()).hexdigest()


def read_sequence(path: Path) -> TaskSequence:
    """The sequence in a file that is there; DataError where it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tasks, counts = tuple(str(name) for name in arrays["task_names"]), arrays["counts"].astype(np.int64)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is damaged ({error}): run that training again") from error
    if counts.ndim != 2 or counts.shape[1] != len(tasks):
        raise DataError(f"{path} is damaged (counts {counts.shape} of {len(tasks)} tasks): run that training again")
    return TaskSequence(tasks, counts)
