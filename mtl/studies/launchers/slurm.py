"""Runs as jobs of a Slurm cluster, by submitit: in job arrays, put back into the queue where they are pre-empted."""

import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtl.errors import ConfigError
from mtl.runtime.processes import is_running
from mtl.studies.launchers import STOPPED, Ended, Start
from mtl.studies.launchers.worker import start_worker
from mtl.studies.run_state import state_of
from mtl.studies.spec import SlurmSettings

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_UNTIL_PREEMPTED = 120
# The launcher holds a file open for each run that it has submitted.
_MOST_SUBMITTED = 500

Request = tuple[str, str]
"""A run's settings file and its directory, as text: what a job is told travels by submitit's own files."""


class RunJob:
    """The work of one job: its runs one after the other, each resumed where it was begun; their exit codes.

    When the job is about to be pre-empted or runs out of its time, submitit calls ``checkpoint``: the run at work saves
    itself, and what is returned is put back into the queue.
    """

    def __init__(self, requests: Sequence[Request], plugins: Sequence[str] = ()) -> None:
        self._requests, self._plugins = tuple(requests), tuple(plugins)
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> list[int]:
        return [self._carry_out(Path(config), Path(directory)) for config, directory in self._requests]

    def checkpoint(self) -> Any:
        """Stop the run at work, and the same job once more: what is complete by then takes it no time."""
        from submitit.helpers import DelayedSubmission

        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            # Not by wait(): this interrupts one, which holds a lock that it would need.
            while is_running(process.pid, None):
                time.sleep(_SECONDS_BETWEEN_LOOKS)
        return DelayedSubmission(RunJob(self._requests, self._plugins))

    def _carry_out(self, config: Path, directory: Path) -> int:
        # A job may come twice: after its first part was done, and from a launcher that was killed and started again.
        if state_of(directory) == "complete":
            return 0
        self._process = start_worker(config, directory, self._plugins)
        code = self._process.wait()
        if code in STOPPED:
            # Slurm sends SIGTERM to every process of a job before the signal that submitit takes for pre-emption: this
            # job is about to be called upon to checkpoint. Where it is not, only its run was stopped.
            time.sleep(_SECONDS_UNTIL_PREEMPTED)
        return code


class SlurmLauncher:
    """Submits the runs that were started since ``ended`` was last asked as one array, ``runs_per_job`` to a job.

    With ``cluster="local"`` submitit carries the same jobs out on this machine.
    """

    def __init__(
        self, folder: Path, settings: SlurmSettings, plugins: Sequence[str] = (), cluster: str = "slurm"
    ) -> None:
        self._settings, self._plugins = settings, plugins
        self._executor = _executor(folder, settings, cluster)
        self._collected: list[Start] = []
        self.jobs: list[tuple[Any, list[Path]]] = []
        """Submitit's jobs that have not ended, each with the directories of its runs."""

    def room(self) -> int:
        return _MOST_SUBMITTED - len(self._collected) - sum(len(runs) for _, runs in self.jobs)

    def start(self, start: Start) -> None:
        self._collected.append(start)

    def ended(self) -> list[Ended]:
        if self._collected:
            self._submit()
        still, ends = [], []
        for job, runs in self.jobs:
            if job.done():
                ends += _ends(job, runs)
            else:
                still.append((job, runs))
        self.jobs = still
        return ends

    def stop(self) -> None:
        """Cancel all jobs: Slurm sends their processes SIGTERM, and SIGKILL when its KillWait is over."""
        for job, _ in self.jobs:
            job.cancel(check=False)
        for job, _ in self.jobs:
            job.wait()

    def _submit(self) -> None:
        size = self._settings.runs_per_job
        chunks = [self._collected[first : first + size] for first in range(0, len(self._collected), size)]
        self._collected = []
        with self._executor.batch():
            # All that is submitted in here becomes one array.
            for chunk in chunks:
                # Absolute, since a job may have another working directory.
                requests = [(str(each.config.absolute()), str(each.run.directory.absolute())) for each in chunk]
                job = self._executor.submit(RunJob(requests, self._plugins))
                self.jobs.append((job, [each.run.directory for each in chunk]))


def _ends(job: Any, runs: Sequence[Path]) -> list[Ended]:
    """How the runs of a job ended that is over."""
    if job.exception() is None:
        (codes,) = job.results()
        return [Ended(run, code) for run, code in zip(runs, codes, strict=True)]
    note = f"its job {job.job_id} ended without having finished it, see {job.paths.stderr}"
    return [Ended(run, 0) if state_of(run) == "complete" else Ended(run, 1, note) for run in runs]


def _executor(folder: Path, settings: SlurmSettings, cluster: str) -> Any:
    try:
        import submitit
    except ModuleNotFoundError as error:
        raise ConfigError(
            "--launcher slurm needs submitit, which is not installed: pip install 'mtl[slurm]'"
        ) from error
    if cluster == "slurm" and shutil.which("srun") is None:
        raise ConfigError("--launcher slurm: there is no srun here; start the study where jobs are submitted")
    executor = submitit.AutoExecutor(folder, cluster=cluster, slurm_max_num_timeout=settings.requeues)
    asked = {
        "timeout_min": settings.minutes,
        "cpus_per_task": settings.cpus,
        "mem_gb": settings.memory_gb,
        "slurm_partition": settings.partition,
        "slurm_account": settings.account,
        "slurm_qos": settings.qos,
        "slurm_gres": settings.gres,
        "slurm_setup": list(settings.setup) or None,
        "slurm_array_parallelism": settings.at_once,
        "slurm_job_name": "mtl",
    }
    executor.update_parameters(**{name: value for name, value in asked.items() if value is not None})
    return executor
