"""Which runs are started, in which order, and what their ends mean; the runs themselves are played."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import a_result
from test_expand import study

from mtl.errors import MtlError, StoppedError
from mtl.records import write_result
from mtl.rundir import RunDirectory
from mtl.runtime.lock import RunLock
from mtl.studies import conduct as conducting
from mtl.studies.conduct import Outcome, conduct
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.launchers import Ended, Start
from mtl.studies.progress import LiveView
from mtl.studies.run_state import Failure, note_failure, read_failure, state_of
from mtl.studies.study_files import Claims, StudyDirectory

ARMS = {"a": ["sampling=uniform"], "b": ["sampling=proportional"]}


class PlayedLauncher:
    """Plays each run by a function of its title: what it does to the directory and the exit code it ends with."""

    def __init__(self, play: Callable[[PlannedRun], int], at_once: int = 1) -> None:
        self.started: list[str] = []
        self.stops = 0
        self._play, self._at_once = play, at_once
        self._playing: list[PlannedRun] = []

    def room(self) -> int:
        return self._at_once - len(self._playing)

    def start(self, start: Start) -> None:
        self.started.append(start.run.title)
        self._playing.append(start.run)

    def takes_over(self, directory: Path) -> bool:
        return False

    def queued(self) -> frozenset[Path]:
        return frozenset()

    def ended(self) -> list[Ended]:
        playing, self._playing = self._playing, []
        return [Ended(run.directory, self._play(run)) for run in playing]

    def stop(self) -> None:
        self.stops += 1


def complete(run: PlannedRun) -> int:
    run.directory.mkdir(parents=True, exist_ok=True)
    write_result(RunDirectory(run.directory).result, a_result({"joint": (("mini/entail2", 50.0, 400, 400),)}))
    return 0


def failing(*titles: str, code: int = 3) -> Callable[[PlannedRun], int]:
    def play(run: PlannedRun) -> int:
        if run.title not in titles:
            return complete(run)
        run.directory.mkdir(parents=True, exist_ok=True)
        RunDirectory(run.directory).log.write_text("a line\nmtl run: no rows: get some\n\n")
        return code

    return play


def carry_out(out: Path, launcher: PlayedLauncher, retry_failed: bool = False, **parts: Any) -> Outcome:
    runs = expand(study(**{"arms": ARMS, **parts}), out)
    out.mkdir(exist_ok=True)
    view = LiveView("played", len(runs), out / "status.json")
    try:
        return conduct(runs, StudyDirectory(out), launcher, view, retry_failed=retry_failed)
    finally:
        view.close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conducting, "_SECONDS_BETWEEN_LOOKS", 0.001)
    monkeypatch.setattr(conducting, "_SECONDS_UNTIL_LOOKED_AT_AGAIN", 0.01)


@pytest.mark.parametrize("at_once", [1, 3])
def test_every_run_is_started_once_and_none_a_second_time(at_once: int, tmp_path: Path) -> None:
    launcher = PlayedLauncher(complete, at_once)
    outcome = carry_out(tmp_path, launcher)
    assert launcher.started == ["a, seed 1", "a, seed 2", "b, seed 1", "b, seed 2"]
    assert (len(outcome.complete), outcome.found, outcome.unfinished) == (4, 0, ())
    again = PlayedLauncher(complete, at_once)
    assert carry_out(tmp_path, again).found == 4
    assert again.started == []


def test_a_failed_run_is_reported_kept_and_retried_when_asked(tmp_path: Path) -> None:
    launcher = PlayedLauncher(failing("a, seed 2"))
    outcome = carry_out(tmp_path, launcher)
    (unfinished,) = outcome.unfinished
    assert unfinished.run.title == "a, seed 2"
    assert unfinished.reason.startswith("failed with exit code 3 (mtl run: no rows: get some)")
    assert unfinished.log == unfinished.run.directory / "log.txt"
    assert len(launcher.started) == 4
    again = PlayedLauncher(complete)
    assert [each.run.title for each in carry_out(tmp_path, again).unfinished] == ["a, seed 2"]
    assert again.started == []
    # It fails once more, and is not tried a third time in the same start.
    again = PlayedLauncher(failing("a, seed 2", code=4))
    assert "exit code 4" in carry_out(tmp_path, again, retry_failed=True).unfinished[0].reason
    assert again.started == ["a, seed 2"]
    assert carry_out(tmp_path, PlayedLauncher(complete), retry_failed=True).unfinished == ()
    assert read_failure(unfinished.run.directory) is None


@pytest.mark.parametrize("code", [-9, 75, 130])
def test_a_run_that_was_killed_or_stopped_alone_is_gone_on_with_by_the_next_start(code: int, tmp_path: Path) -> None:
    outcome = carry_out(tmp_path, PlayedLauncher(failing("b, seed 1", code=code)))
    assert "the same command goes on with it" in outcome.unfinished[0].reason
    again = PlayedLauncher(complete)
    assert carry_out(tmp_path, again).unfinished == ()
    assert again.started == ["b, seed 1"]


def test_success_without_a_result_is_a_failure(tmp_path: Path) -> None:
    outcome = carry_out(tmp_path, PlayedLauncher(failing("b, seed 1", code=0)))
    assert "failed with exit code 0" in outcome.unfinished[0].reason


def test_a_run_waits_for_the_one_it_starts_from(tmp_path: Path) -> None:
    arms = {"later": ["init.from=arm:first"], "first": [], "alone": ["sampling=uniform"]}
    launcher = PlayedLauncher(complete)
    carry_out(tmp_path / "well", launcher, arms=arms, seeds="1")
    assert sorted(launcher.started) == ["alone, seed 1", "first, seed 1", "later, seed 1"]
    assert launcher.started.index("first, seed 1") < launcher.started.index("later, seed 1")
    launcher = PlayedLauncher(failing("first, seed 1"))
    outcome = carry_out(tmp_path / "badly", launcher, arms=arms, seeds="1")
    assert launcher.started == ["first, seed 1", "alone, seed 1"]
    assert outcome.unfinished[0].reason == ("waits for first, seed 1, which is not complete")


def test_a_run_in_use_is_left_alone_and_looked_at_again(tmp_path: Path) -> None:
    (run, *_) = expand(study(arms=ARMS), tmp_path)
    lock = RunLock(RunDirectory(run.directory).lock)
    lock.__enter__()

    def play(other: PlannedRun) -> int:
        # By the end of the last of the others, whoever had the first run has finished it.
        if other.title == "b, seed 2":
            complete(run)
            lock.__exit__(None, None, None)
        return complete(other)

    launcher = PlayedLauncher(play)
    outcome = carry_out(tmp_path, launcher)
    assert launcher.started == ["a, seed 2", "b, seed 1", "b, seed 2"]
    assert len(outcome.complete) == 4


def test_a_run_in_use_that_the_launcher_knows_of_is_taken_over(tmp_path: Path) -> None:
    (run, *_) = expand(study(arms=ARMS), tmp_path)
    lock = RunLock(RunDirectory(run.directory).lock)
    lock.__enter__()

    class Knowing(PlayedLauncher):
        def takes_over(self, directory: Path) -> bool:
            return directory == run.directory

    def play(other: PlannedRun) -> int:
        if other.title == "a, seed 1":
            lock.__exit__(None, None, None)
        return complete(other)

    launcher = Knowing(play)
    carry_out(tmp_path, launcher)
    assert launcher.started[0] == "a, seed 1"
    assert len(launcher.started) == 4


def test_runs_that_wait_on_a_cluster_are_shown_as_queued(tmp_path: Path) -> None:
    shown = []

    class Queueing(PlayedLauncher):
        """Carries out one run at a time of those it was given."""

        def queued(self) -> frozenset[Path]:
            return frozenset(run.directory for run in self._playing[1:])

        def ended(self) -> list[Ended]:
            if self._playing:
                status = json.loads((tmp_path / "status.json").read_text())
                shown.append((status["counts"]["running"], status["counts"]["queued"], list(status["runs"].values())))
            first, self._playing = self._playing[:1], self._playing[1:]
            return [Ended(run.directory, self._play(run)) for run in first]

    carry_out(tmp_path, Queueing(complete, at_once=4))
    assert [counts[:2] for counts in shown] == [(1, 3), (1, 2), (1, 1), (1, 0)]
    assert shown[1][2] == ["complete", "running", "queued", "queued"]


def test_a_run_that_somebody_else_takes_meanwhile_is_no_failure(tmp_path: Path) -> None:
    locks = []

    def play(run: PlannedRun) -> int:
        if run.title != "a, seed 1" or locks:
            for lock in locks[:1]:
                lock.__exit__(None, None, None)
                locks[0] = RunLock(tmp_path / "unused.lock").__enter__()
            return complete(run)
        locks.append(RunLock(RunDirectory(run.directory).lock).__enter__())
        return 2

    launcher = PlayedLauncher(play)
    assert carry_out(tmp_path, launcher).unfinished == ()
    assert launcher.started.count("a, seed 1") == 2


def test_a_run_that_another_launcher_claims_is_left_to_it(tmp_path: Path) -> None:
    (run, *_) = expand(study(arms=ARMS), tmp_path)
    claims = Claims(StudyDirectory(tmp_path))
    assert claims.take(run)

    def play(other: PlannedRun) -> int:
        if other.title == "b, seed 2":
            complete(run)
            claims.release(run)
        return complete(other)

    launcher = PlayedLauncher(play, at_once=2)
    assert len(carry_out(tmp_path, launcher).complete) == 4
    assert "a, seed 1" not in launcher.started


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 75), ("SIGINT", 130), ("SIGUSR1", 75)])
def test_a_signal_stops_the_runs_and_the_study(number: str, code: int, tmp_path: Path) -> None:
    def play(run: PlannedRun) -> int:
        if run.title == "a, seed 2":
            os.kill(os.getpid(), getattr(signal, number))
        return complete(run)

    launcher = PlayedLauncher(play)
    with pytest.raises(StoppedError, match=f"stopped by {number} with 2 of 4 runs done") as caught:
        carry_out(tmp_path, launcher)
    assert caught.value.exit_code == code
    assert launcher.stops == 1
    again = PlayedLauncher(complete)
    carry_out(tmp_path, again)
    assert "a, seed 1" not in again.started


def test_an_error_of_the_study_itself_stops_the_runs(tmp_path: Path) -> None:
    def play(run: PlannedRun) -> int:
        raise MtlError("no space left")

    launcher = PlayedLauncher(play)
    with pytest.raises(MtlError, match="no space left"):
        carry_out(tmp_path, launcher)
    assert launcher.stops == 1


def test_states_are_read_from_the_directory(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    assert state_of(run.path) == "new"
    run.path.mkdir()
    run.config.write_text("")
    assert state_of(run.path) == "interrupted"
    note_failure(run.path, Failure(exit_code=3, message="no rows"))
    assert state_of(run.path) == "failed"
    with RunLock(run.lock):
        assert state_of(run.path) == "in use"
    assert state_of(run.path) == "failed"
    write_result(run.result, a_result({}, status="stopped"))
    run.failure.unlink()
    assert state_of(run.path) == "interrupted"
    write_result(run.result, a_result({}, status="failed"))
    assert state_of(run.path) == "failed"
    write_result(run.result, a_result({}))
    assert state_of(run.path) == "complete"
