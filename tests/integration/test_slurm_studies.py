"""The jobs of a study on a cluster, carried out on this machine by submitit's local executor."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import assert_same_training, result_of, run_tiny, settings

from mtl.cli import main
from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.studies.conduct import conduct
from mtl.studies.expand import expand
from mtl.studies.launchers.run_job import RunJob
from mtl.studies.launchers.slurm import Job, SlurmLauncher
from mtl.studies.progress import LiveView
from mtl.studies.spec import SlurmSettings, StudySpec, validate_study
from mtl.studies.study_files import StudyDirectory, write_study

pytest.importorskip("submitit", reason="jobs of a cluster need submitit: pip install 'mtl[slurm]'")

LONG = ("stages=[joint]", "training.updates=400", "checkpoint.every=null", "training.device=cpu")


def tiny_study(out: Path, *overrides: str, arms: int = 2) -> StudySpec:
    """Arms of different learning rates, one seed."""
    words = [word for word in settings(out, *overrides) if not word.startswith("out=")]
    rates = {f"rate{number}": [f"optimizer.learning_rate={number}e-3"] for number in range(1, arms + 1)}
    document = {"name": "jobs", "question": "q", "base": [str(out / "empty.yaml")], "overrides": words}
    (out / "empty.yaml").write_text("")
    return validate_study({**document, "arms": rates, "seeds": ["1"]}, out / "study.yaml")


class LocalJobs:
    """Submitit's local jobs, which run at once, in place of Slurm's queue."""

    def __init__(self) -> None:
        self.jobs: dict[str, Any] = {}

    def add(self, jobs: Sequence[Any]) -> None:
        self.jobs |= {job.job_id: job for job in jobs}

    def is_over(self, job: str) -> bool:
        return bool(self.jobs[job].done())

    def waits(self, job: str) -> bool:
        return False

    def cancel(self, jobs: Sequence[str]) -> None:
        for job in jobs:
            self.jobs[job].cancel()
            self.jobs[job].wait()


def preempt(job: Job, numbers: Sequence[signal.Signals]) -> None:
    """Send the signals that Slurm sends to all that runs in a job.

    Submitit's own way to try this reaches only the process that minds its local jobs, and ends it.
    """
    minder = job.submitted._process.pid
    (task,) = Path(f"/proc/{minder}/task/{minder}/children").read_text().split()
    (worker,) = Path(f"/proc/{task}/task/{task}/children").read_text().split()
    for number in numbers:
        for process in (worker, task):
            # The worker may have gone by the second one.
            with suppress(ProcessLookupError):
                os.kill(int(process), number)
        time.sleep(0.5)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the job's processes are found in /proc")
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGUSR2,), (signal.SIGTERM, signal.SIGUSR2)],
    ids=["its time is nearly over", "it is pre-empted"],
)
def test_a_preempted_job_is_queued_again_and_ends_as_one_that_was_not(
    numbers: Sequence[signal.Signals], tmp_path: Path
) -> None:
    study = tiny_study(tmp_path, *LONG)
    directory = StudyDirectory(tmp_path / "out")
    runs = expand(study, directory.path)
    write_study(directory, study, runs)
    launcher = SlurmLauncher(directory.jobs, SlurmSettings(runs_per_job=2, minutes=30), queue=LocalJobs())
    log = runs[1].directory / "joint" / "metrics.jsonl"

    class Preempting(LiveView):
        """Interrupts the only job once, while its second run is trained."""

        interrupted = False

        def show(self, *arguments: object) -> None:
            if not self.interrupted and log.is_file() and b'"train/' in log.read_bytes():
                (job,) = launcher.jobs
                preempt(job, numbers)
                self.interrupted = True

    view = Preempting("jobs", 2, directory.status)
    outcome = conduct(runs, directory, launcher, view, retry_failed=False)
    view.close()
    assert view.interrupted
    assert outcome.unfinished == ()
    first, second = ((run.directory / "log.txt").read_text() for run in runs)
    assert first.count("joint: training") == 1
    assert "stopped by SIGTERM" in second
    assert "joint: done before" not in second
    run_tiny(tmp_path / "whole", *LONG, "optimizer.learning_rate=2e-3")
    assert result_of(runs[1].directory)["stages"] == result_of(tmp_path / "whole")["stages"]
    assert_same_training(*(RunDirectory(path).stage("joint") for path in (runs[1].directory, tmp_path / "whole")))


@pytest.mark.timeout(400)
def test_jobs_that_end_without_a_result_leave_runs_to_the_next_start(tmp_path: Path) -> None:
    study = tiny_study(tmp_path, *LONG, arms=1)
    directory = StudyDirectory(tmp_path / "out")
    runs = expand(study, directory.path)
    write_study(directory, study, runs)
    launcher = SlurmLauncher(directory.jobs, SlurmSettings(), queue=LocalJobs())

    class Cancelling(LiveView):
        def show(self, *arguments: object) -> None:
            if launcher.jobs and (runs[0].directory / "config.yaml").is_file():
                launcher.jobs[0].submitted.cancel()

    view = Cancelling("jobs", 1, directory.status)
    (unfinished,) = conduct(runs, directory, launcher, view, retry_failed=False).unfinished
    view.close()
    assert "ended without having finished it" in unfinished.reason
    while (runs[0].directory / "run.lock").exists():
        time.sleep(0.05)
    assert RunJob([(str(directory.config(runs[0])), str(runs[0].directory))])() == {str(runs[0].directory): 0}


def test_a_machine_without_slurm_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="there is no srun here"):
        SlurmLauncher(tmp_path / "jobs", SlurmSettings())
    words = ["--from", "quickstart", "--grid", "sampling=uniform", "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main(["study", *words, "--launcher", "slurm"]) == 2
    assert "there is no srun here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
