"""What a job does with signals: its runs are small shell scripts, Slurm's word is played."""

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mtl.runtime.slurm_job import SlurmJob
from mtl.studies.launchers import run_job
from mtl.studies.launchers.run_job import RunJob

STOPPED_ALONE = "exit 75"
STOPPED_WITH_ITS_JOB = "kill -TERM $PPID; exit 75"


class Workers:
    """Each run's process does what the script of its directory's name says."""

    def __init__(self, **scripts: str) -> None:
        self.scripts = scripts
        self.environments: list[Mapping[str, str]] = []

    def start(
        self, config: Path, directory: Path, plugins: Sequence[str], environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        self.environments.append(environment)
        return subprocess.Popen(["sh", "-c", self.scripts[directory.name]])


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The signals that reach whoever handled SIGTERM before, as submitit does in a job."""
    seen: list[int] = []

    def handle(number: int, frame: object) -> None:
        seen.append(number)

    monkeypatch.setattr(run_job, "_SECONDS_UNTIL_NOTICED", 0.01)
    monkeypatch.setattr(run_job, "_SECONDS_BETWEEN_QUESTIONS", 0.01)
    monkeypatch.setattr(run_job, "own_job", lambda: SlurmJob(number="1", restarts=0, cluster="here"))
    before = signal.signal(signal.SIGTERM, handle)
    yield seen
    assert signal.getsignal(signal.SIGTERM) is handle
    signal.signal(signal.SIGTERM, before)


def job_of(workers: Workers, path: Path, monkeypatch: pytest.MonkeyPatch) -> RunJob:
    monkeypatch.setattr(run_job, "start_worker", workers.start)
    return RunJob([(str(path / f"{name}.yaml"), str(path / name)) for name in workers.scripts])


def test_a_job_that_slurm_ends_begins_nothing_more_and_leaves_no_result(
    seen: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(run_job, "is_being_ended", lambda job: next(answers))
    workers = Workers(first=STOPPED_WITH_ITS_JOB, second="exit 0")
    with pytest.raises(SystemExit, match="being ended by Slurm"):
        job_of(workers, tmp_path, monkeypatch)()
    assert seen == [signal.SIGTERM]
    assert len(workers.environments) == 1


def test_a_signal_that_nothing_follows_ends_the_job_in_the_end(
    seen: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_job, "_SECONDS_UNTIL_ENDED", 0.0)
    workers = Workers(first=STOPPED_WITH_ITS_JOB, second="exit 0")
    assert job_of(workers, tmp_path, monkeypatch)() == {str(tmp_path / "first"): 75}
    # What is finished already is told, whatever was announced.
    workers = Workers(only="kill -TERM $PPID; exit 0")
    assert job_of(workers, tmp_path, monkeypatch)() == {str(tmp_path / "only"): 0}


def test_a_run_that_is_stopped_alone_or_fails_does_not_end_its_job(
    seen: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers(stopped=STOPPED_ALONE, failed="exit 3", killed="kill -KILL $$", well="exit 0")
    codes = job_of(workers, tmp_path, monkeypatch)()
    assert [codes[str(tmp_path / name)] for name in workers.scripts] == [75, 3, -9, 0]


@pytest.mark.parametrize(("given", "set_before", "threads"), [("3", None, "3"), ("3", "2", None), (None, None, None)])
def test_a_run_takes_as_many_threads_as_its_job_has_cores(
    given: str | None,
    set_before: str | None,
    threads: str | None,
    seen: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("SLURM_CPUS_ON_NODE", given), ("OMP_NUM_THREADS", set_before)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    workers = Workers(only="exit 0")
    job_of(workers, tmp_path, monkeypatch)()
    assert workers.environments == [{} if threads is None else {"OMP_NUM_THREADS": threads}]
