"""Updates that repeat what another run drew: of each task as many examples, in each update."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mtl.config.load import load_config
from mtl.config.resolve import resolve_stage
from mtl.config.training import TrainingSettings
from mtl.data.plan import UpdatePlan, next_examples
from mtl.data.streams import TaskStream
from mtl.data.task_sequence import TaskSequence, read_sequence
from mtl.errors import ConfigError, DataError
from mtl.rundir import RunDirectory
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class ReplayPlanner:
    """The first ``total`` updates of a recorded sequence, ``counts`` (updates, K) examples of the streams' tasks.

    Which examples these are follows from the streams: those of the recorded run where seed and rows are the same.
    """

    total: int
    streams: Sequence[TaskStream]
    counts: IntArray

    def probabilities(self, step: int) -> FloatArray:
        """The share of the update's examples that each task has."""
        return np.asarray(self.counts[step] / self.counts[step].sum(), dtype=np.float64)

    def seek(self, step: int, cursors: IntArray) -> None:
        """Nothing to do: any update follows from its number alone."""

    def plan(self, step: int) -> UpdatePlan:
        """See ``UpdatePlanner``; the slots are ordered as :func:`mtl.data.plan.next_examples` says."""
        return next_examples(step, self.streams, self._before[step], self.counts[step])

    @property
    def examples(self) -> int:
        """Examples in the whole training."""
        return int(self._before[self.total].sum())

    def cursors(self, step: int) -> IntArray:
        """Examples of each task (K,) before ``step``."""
        return np.array(self._before[step], dtype=np.int64)

    @cached_property
    def _before(self) -> IntArray:
        return np.concatenate([np.zeros((1, len(self.streams)), dtype=np.int64), np.cumsum(self.counts, axis=0)])


def replay_planner(
    directory: str | None, training: TrainingSettings, total: int, streams: Sequence[TaskStream]
) -> ReplayPlanner:
    """The planner of ``total`` updates as the run in ``directory`` drew them.

    ConfigError where that run drew fewer updates, updates of another size, or not from the same tasks; DataError where
    it has recorded no sequence.
    """
    if directory is None:
        raise ConfigError("sampling.kind is replay: set sampling.from to the run whose task sequence is to be replayed")
    sequence = recorded_sequence(directory)
    tasks = tuple(stream.task for stream in streams)
    if set(tasks) != set(sequence.tasks):
        lacking = ", ".join(sorted(set(tasks) - set(sequence.tasks))) or "none"
        more = ", ".join(sorted(set(sequence.tasks) - set(tasks))) or "none"
        raise ConfigError(
            f"sampling.from: {directory} has drawn from other tasks than this run trains: never from {lacking}, and "
            f"besides from {more}; give both runs the same tasks"
        )
    _check_size(directory, training)
    if total > len(sequence.counts):
        raise ConfigError(
            f"sampling.from: {directory} has recorded {len(sequence.counts):,} updates, and this run takes {total:,}; "
            f"set training.updates={len(sequence.counts)} or less, or replay a longer run"
        )
    return ReplayPlanner(total, streams, sequence.of(tasks))


def recorded_sequence(directory: str) -> TaskSequence:
    """What the joint stage of the run in ``directory`` drew; DataError where there is none, or it has not finished."""
    run = RunDirectory(Path(directory).expanduser())
    if not run.config.is_file():
        raise DataError(f"sampling.from: {directory} is no run directory, it has no config.yaml")
    path = run.stage("joint").sequence
    if not path.is_file():
        raise DataError(
            f"sampling.from: {directory} has no {path.relative_to(run.path)}, which a joint stage leaves at its end; "
            "let that run finish, or name one that has such a stage"
        )
    return read_sequence(path)


def _check_size(directory: str, training: TrainingSettings) -> None:
    """The recorded counts make up updates of the size that this training says it has."""
    recorded = resolve_stage(load_config(RunDirectory(Path(directory).expanduser()).config), "joint", None).training
    for name in ("rows_per_update", "tokens_per_update"):
        there, here = getattr(recorded, name), getattr(training, name)
        if there != here:
            raise ConfigError(
                f"sampling.from: {directory} has training.{name} {_shown(there)}, and this run {_shown(here)}; counts "
                "are replayed as they were, so set it alike"
            )


def _shown(value: int | None) -> str:
    return "not set" if value is None else str(value)
