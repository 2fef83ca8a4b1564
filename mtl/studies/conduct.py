"""Carrying out the runs of a study until each is done, has failed, or waits for one that has."""

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mtl.errors import StoppedError
from mtl.rundir import RunDirectory
from mtl.runtime.lock import is_taken
from mtl.runtime.stop_requests import StopRequests
from mtl.studies.expand import PlannedRun
from mtl.studies.launchers import STOPPED, Ended, Launcher, Start
from mtl.studies.progress import Counts, LiveView, seconds_left
from mtl.studies.run_progress import Advance, RunProgress, Updates, updates_of
from mtl.studies.run_state import Failure, forget_failure, note_failure, read_failure, state_of
from mtl.studies.study_files import Claims, StudyDirectory

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_UNTIL_LOOKED_AT_AGAIN = 1.0
_USAGE = 2


@dataclass(frozen=True)
class Unfinished:
    """A run that is not complete: why, and the file to look into."""

    run: PlannedRun
    reason: str
    log: Path


@dataclass(frozen=True)
class Outcome:
    """The directories of the complete runs, how many of them were complete before, and what is not complete."""

    complete: tuple[Path, ...]
    found: int
    unfinished: tuple[Unfinished, ...]


def conduct(
    runs: Sequence[PlannedRun], directory: StudyDirectory, launcher: Launcher, view: LiveView, *, retry_failed: bool
) -> Outcome:
    """Start every run that is not complete, each once at most, and return when nothing more can be done.

    A run that was begun goes on; one that failed before is started with ``retry_failed`` only; one that another process
    is at is left to it and looked at again. SIGTERM, SIGUSR1 and Ctrl-C stop all runs, which save themselves, and raise
    StoppedError.
    """
    conductor = _Conductor(runs, directory, launcher, view, retry_failed=retry_failed)
    with StopRequests() as requests:
        try:
            while conductor.step():
                if requests.requested is not None:
                    raise _stopped(conductor, requests.requested)
                time.sleep(_SECONDS_BETWEEN_LOOKS)
        except Exception:
            launcher.stop()
            raise
        finally:
            conductor.claims.release_all()
    return conductor.outcome()


def _stopped(conductor: "_Conductor", name: str) -> StoppedError:
    done = len(conductor.outcome().complete)
    return StoppedError(
        f"stopped by {name} with {done} of {conductor.total} runs done; the same command goes on from there",
        interrupted_by_user=name == signal.SIGINT.name,
    )


class _Conductor:
    """Which run is where. Every run is in exactly one of pending, working, complete and unfinished."""

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        directory: StudyDirectory,
        launcher: Launcher,
        view: LiveView,
        *,
        retry_failed: bool,
    ) -> None:
        self._runs = {run.directory: run for run in runs}
        self._directory, self._launcher, self._view, self._retry = directory, launcher, view, retry_failed
        self.claims = Claims(directory)
        self._pending = dict(self._runs)
        self._elsewhere: dict[Path, float] = {}
        """Runs that another process was at, and when."""
        self._working: dict[Path, float] = {}
        """Runs started here, and when; those in the queue of a cluster: when they were last seen there."""
        self._queued: frozenset[Path] = frozenset()
        self._progress: dict[Path, RunProgress] = {}
        self._updates: dict[tuple[str, ...], Updates | None] = {}
        """By the arms of a run, since they do not depend on its seed."""
        self._complete = {path for path in self._runs if state_of(path) == "complete"}
        self._found = len(self._complete)
        self._unfinished: dict[Path, Unfinished] = {}
        self._durations: list[float] = []
        for path in self._complete:
            del self._pending[path]

    @property
    def total(self) -> int:
        return len(self._runs)

    def step(self) -> bool:
        """Take note of what ended, start what can be started; whether anything is still to be waited for."""
        for ended in self._launcher.ended():
            self._take_note(ended)
        # Given up last, the place of a run that ended is taken in the same step.
        for run in list(self._pending.values()):
            if self._launcher.room() > 0 or any(source in self._unfinished for source in run.waits_for):
                self._consider(run)
        self._show()
        return bool(self._pending or self._working)

    def outcome(self) -> Outcome:
        """All runs as they are now, in the order of the study."""
        complete = tuple(path for path in self._runs if path in self._complete)
        return Outcome(
            complete, self._found, tuple(self._unfinished[path] for path in self._runs if path in self._unfinished)
        )

    def _consider(self, run: PlannedRun) -> None:
        """Start a pending run if it is time, or find that it needs no start."""
        for source in run.waits_for:
            if source in self._unfinished:
                self._give_up(run, f"waits for {self._runs[source].title}, which is not complete")
                return
        looked = self._elsewhere.get(run.directory, float("-inf"))
        waits = any(source not in self._complete for source in run.waits_for)
        if waits or time.monotonic() - looked < _SECONDS_UNTIL_LOOKED_AT_AGAIN:
            return
        if not self.claims.take(run):
            self._elsewhere[run.directory] = time.monotonic()
            return
        # Looked at once it is claimed: another launcher may have finished it a moment ago.
        state = state_of(run.directory)
        if state == "in use" and not self._launcher.takes_over(run.directory):
            self._elsewhere[run.directory] = time.monotonic()
        elif state == "complete":
            self._finish(run)
        elif state == "failed" and not self._retry:
            self._give_up(run, _why(run.directory))
        else:
            self._start(run)
            return
        self.claims.release(run)

    def _start(self, run: PlannedRun) -> None:
        forget_failure(run.directory)
        del self._pending[run.directory]
        self._elsewhere.pop(run.directory, None)
        self._working[run.directory] = time.monotonic()
        self._show()
        self._launcher.start(Start(run, self._directory.config(run)))

    def _take_note(self, ended: Ended) -> None:
        run = self._runs[ended.directory]
        began = self._working.pop(ended.directory)
        self._progress.pop(ended.directory, None)
        code = ended.exit_code
        if code == 0 and state_of(run.directory) == "complete":
            self._durations.append(time.monotonic() - began)
            self._finish(run)
        elif code == _USAGE and is_taken(RunDirectory(run.directory).lock):
            # Somebody else was faster, after it was looked at here.
            self._pending[run.directory] = run
            self._elsewhere[run.directory] = time.monotonic()
        elif ended.note is not None:
            self._give_up(run, f"{ended.note}; the same command goes on with it")
        elif code in STOPPED:
            self._give_up(run, "was stopped by a signal to it alone; the same command goes on with it")
        elif code < 0:
            name = signal.Signals(-code).name
            self._give_up(
                run, f"was killed by {name} (SIGKILL is often lack of memory); the same command goes on with it"
            )
        else:
            note_failure(run.directory, Failure(exit_code=code, message=_last_words(run.directory)))
            self._give_up(run, _why(run.directory))
        self.claims.release(run)

    def _finish(self, run: PlannedRun) -> None:
        self._pending.pop(run.directory, None)
        self._elsewhere.pop(run.directory, None)
        self._complete.add(run.directory)

    def _give_up(self, run: PlannedRun, reason: str) -> None:
        self._pending.pop(run.directory, None)
        self._elsewhere.pop(run.directory, None)
        log = RunDirectory(run.directory).log
        self._unfinished[run.directory] = Unfinished(run, reason, log)
        self._view.say(f"{run.title}: {reason}; log: {log}")

    def _show(self) -> None:
        now = time.monotonic()
        waiting = len(self._pending) - len(self._elsewhere)
        self._queued = self._launcher.queued() & self._working.keys()
        # The time that a run takes is counted from when it leaves the queue.
        self._working |= dict.fromkeys(self._queued, now)
        for path in self._queued:
            # One that was put back begins its measured time anew.
            self._progress.pop(path, None)
        running = [
            self._advance(path, now - began) for path, began in self._working.items() if path not in self._queued
        ]
        counts = Counts(
            done=len(self._complete),
            running=len(running),
            queued=len(self._queued),
            elsewhere=len(self._elsewhere),
            failed=len(self._unfinished),
            left=waiting,
        )
        at_once = len(running) + (0 if self._queued else min(waiting, self._launcher.room()))
        left = seconds_left(self._durations, running, waiting + len(self._queued), at_once)
        self._view.show(counts, left, {run.title: self._word(path) for path, run in self._runs.items()})

    def _advance(self, path: Path, seconds: float) -> Advance:
        """How far a run is that has been at work for so long."""
        if path not in self._progress:
            run = self._runs[path]
            if run.arms not in self._updates:
                self._updates[run.arms] = updates_of(run.config)
            self._progress[path] = RunProgress(path, self._updates[run.arms])
        return self._progress[path].after(seconds)

    def _word(self, path: Path) -> str:
        if path in self._complete:
            return "complete"
        if path in self._unfinished:
            return self._unfinished[path].reason
        if path in self._working:
            return "queued" if path in self._queued else "running"
        return "at work elsewhere" if path in self._elsewhere else "left"


def _why(directory: Path) -> str:
    failure = read_failure(directory)
    if failure is None:
        return "failed; --retry-failed tries it again"
    return f"failed with exit code {failure.exit_code} ({failure.message}); --retry-failed tries it again"


def _last_words(directory: Path) -> str:
    """The last line of the run's log, which is where an error says what it is."""
    log = RunDirectory(directory).log
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")[:500]
