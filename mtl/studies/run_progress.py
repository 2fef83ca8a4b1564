"""How far a run at work is, by the updates that its logs tell of."""

import json
from dataclasses import dataclass
from pathlib import Path

from mtl.config.run import RunConfig, Stage
from mtl.errors import MtlError
from mtl.rundir import RunDirectory
from mtl.stages.plan import plan_run

_SECONDS_BETWEEN_READINGS = 1.0
# Of the updates of a run: over fewer its rate is not to be trusted.
_LEAST_SHARE = 0.02
# Longer than any record of a training.
_TAIL = 1 << 16


Updates = dict[tuple[Stage, str | None], int]
"""The updates of each model of a run, by its stage and its task."""


def updates_of(config: RunConfig) -> Updates | None:
    """How long each training is; None where that is known only once rows are read, or where data are missing."""
    try:
        plan = plan_run(config)
    except MtlError:
        # The run itself will say what is the matter.
        return None
    models = {(stage.stage, model.task): model.updates for stage in plan.stages for model in stage.models}
    known = {model: updates for model, updates in models.items() if updates is not None}
    return known if len(known) == len(models) else None


@dataclass(frozen=True)
class Advance:
    """A run at work for ``seconds``; what it takes from start to end at its own rate, and what it still needs.

    Both are None where that is not known, or not yet.
    """

    seconds: float
    whole: float | None
    rest: float | None


class RunProgress:
    """Follows one run from where it is now; its files are read at most once a second.

    ``updates`` are those of :func:`updates_of` the run, or None.
    """

    def __init__(self, directory: Path, updates: Updates | None) -> None:
        run = RunDirectory(directory)
        self._logs = {run.stage(*model).metrics: number for model, number in (updates or {}).items()}
        self._total = sum(self._logs.values())
        self._before = self._done = self._read()
        self._read_after = 0.0
        self._moved: tuple[float, int] | None = None
        """The seconds and the updates done when the first record was seen: what came before is no training."""

    def after(self, seconds: float) -> Advance:
        """How far the run is, so many seconds after it was started."""
        if seconds - self._read_after >= _SECONDS_BETWEEN_READINGS:
            self._done, self._read_after = self._read(), seconds
        if self._moved is None and self._done > self._before:
            self._moved = (seconds, self._done)
        if self._moved is None or self._done - self._moved[1] < _LEAST_SHARE * self._total:
            return Advance(seconds, None, None)
        start, done = self._moved
        each = (seconds - start) / (self._done - done)
        until_training = max(0.0, start - (done - self._before) * each)
        return Advance(seconds, until_training + self._total * each, (self._total - self._done) * each)

    def _read(self) -> int:
        return sum(min(_last_step(log), updates) for log, updates in self._logs.items())


def _last_step(metrics: Path) -> int:
    """The updates after which the last whole record was written; 0 where there is none that can be read."""
    if not metrics.is_file():
        return 0
    with metrics.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL))
        lines = file.read().split(b"\n")
    try:
        # What follows the last line's end is a record that is being written, or nothing.
        return int(json.loads(lines[-2])["step"]) if len(lines) > 1 else 0
    except ValueError:
        # A machine that lost its power leaves such an end; the resumed run cuts it off.
        return 0
