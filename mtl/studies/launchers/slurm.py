"""Runs as jobs of a Slurm cluster, by submitit: in job arrays, put back into the queue where they are pre-empted.

::

    <out>/slurm/<job>_submission.sh  <job>_0_log.out  <job>_0_log.err    what was asked for, and what the job said
    <out>/slurm/<job>_runs.json      while it is in the queue, its runs' directories: for a launcher that comes later

What the runs say is in their own log.txt.
"""

import json
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtl.atomic import write_text_atomically
from mtl.errors import ConfigError
from mtl.studies.launchers import Ended, Start
from mtl.studies.launchers.job_queue import JobQueue, SlurmQueue
from mtl.studies.launchers.run_job import RunJob
from mtl.studies.run_state import state_of
from mtl.studies.spec import SlurmSettings

_logger = logging.getLogger("mtl")

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_FOR_A_RESULT_TO_APPEAR = 5.0
# The launcher holds a file open for each run that it has submitted.
_MOST_SUBMITTED = 500


@dataclass
class Job:
    """A job in the queue: submitit's, and the directories of those of its runs that are waited for, in their order."""

    submitted: Any
    runs: list[Path]
    over_since: float | None = None

    @property
    def number(self) -> str:
        return str(self.submitted.job_id)


class SlurmLauncher:
    """Submits the runs that were started since ``ended`` was last asked as one array, ``runs_per_job`` to a job.

    At most ``at_once`` jobs of the study are at work: Slurm sees to that within an array, and another one is submitted
    only when what is left of the earlier ones leaves it room. A job that an earlier launcher submitted and did not live
    to see is waited for instead of submitting its runs again.
    """

    def __init__(
        self, folder: Path, settings: SlurmSettings, plugins: Sequence[str] = (), queue: JobQueue | None = None
    ) -> None:
        """``queue``: where jobs are carried out that are not given to Slurm."""
        self._folder, self._settings, self._plugins = folder.absolute(), settings, plugins
        self._executor = _executor(self._folder, settings, cluster="slurm" if queue is None else "local")
        self._queue = SlurmQueue() if queue is None else queue
        self._collected: list[Start] = []
        self._looked = float("-inf")
        self.jobs: list[Job] = []
        """The jobs whose runs this launcher was asked to start."""
        self._found = list(self._jobs_of_earlier_launchers())

    def room(self) -> int:
        return _MOST_SUBMITTED - len(self._collected) - sum(len(job.runs) for job in self.jobs)

    def takes_over(self, directory: Path) -> bool:
        return any(directory in job.runs and not self._queue.is_over(job.number) for job in self._found)

    def start(self, start: Start) -> None:
        directory = start.run.directory
        found = next((job for job in self._found if directory in job.runs), None)
        if found is None or self._queue.is_over(found.number):
            self._collected.append(start)
            return
        mine = next((job for job in self.jobs if job.number == found.number), None)
        if mine is None:
            mine = Job(found.submitted, [])
            self.jobs.append(mine)
            _logger.info("job %s is in the queue still, and is waited for", found.number)
        mine.runs.append(directory)

    def queued(self) -> frozenset[Path]:
        waiting = [start.run.directory for start in self._collected]
        for job in self.jobs:
            # A job that is at work is so at one of its runs.
            waiting += job.runs if self._queue.waits(job.number) else job.runs[1:]
        return frozenset(waiting)

    def ended(self) -> list[Ended]:
        if self._collected:
            self._submit()
        now = time.monotonic()
        if now - self._looked < _SECONDS_BETWEEN_LOOKS:
            return []
        self._looked = now
        ends = [end for job in self.jobs for end in self._ends(job, now)]
        for end in ends:
            for job in self.jobs:
                job.runs = [run for run in job.runs if run != end.directory]
        self.jobs = [job for job in self.jobs if job.runs]
        return ends

    def stop(self) -> None:
        """Cancel all jobs, whose runs save themselves."""
        self._queue.cancel([job.number for job in self.jobs])
        for job in self.jobs:
            self._notes(job.number).unlink(missing_ok=True)

    def _submit(self) -> None:
        """Submit what was collected, as far as there is room beside the jobs of other arrays."""
        import submitit

        size, most = self._settings.runs_per_job, len(self._collected)
        alive = {job.number for job in (*self.jobs, *self._found) if not self._queue.is_over(job.number)}
        if alive:
            most = max(0, self._settings.at_once - len(alive)) * size
        now, self._collected = self._collected[:most], self._collected[most:]
        chunks = [now[first : first + size] for first in range(0, len(now), size)]
        if not chunks:
            return
        try:
            with self._executor.batch():
                # All that is submitted in here becomes one array.
                submitted = [self._executor.submit(self._job(chunk)) for chunk in chunks]
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            raise ConfigError(
                f"--launcher slurm: sbatch does not take the jobs: {str(error).strip()}\n"
                f"What they ask for is in {self._folder}; change it with --slurm key=value"
            ) from error
        for job, chunk in zip(submitted, chunks, strict=True):
            self.jobs.append(Job(job, [start.run.directory for start in chunk]))
            directories = [str(run.absolute()) for run in self.jobs[-1].runs]
            write_text_atomically(self._notes(job.job_id), json.dumps(directories, indent=2) + "\n")
        self._queue.add(submitted)

    def _job(self, chunk: Sequence[Start]) -> RunJob:
        # Absolute, since a job may have another working directory.
        requests = [(str(each.config.absolute()), str(each.run.directory.absolute())) for each in chunk]
        return RunJob(requests, self._plugins)

    def _ends(self, job: Job, now: float) -> list[Ended]:
        """The runs of a job that have ended."""
        over = self._queue.is_over(job.number)
        # A job that puts itself back into the queue is ended by that, and may leave an error before it comes again.
        if job.submitted.paths.result_pickle.is_file() and (over or job.submitted.exception() is None):
            self._notes(job.number).unlink(missing_ok=True)
            return _told_ends(job)
        if over:
            # A directory that was changed from here is read anew where it lies on another machine.
            self._notes(job.number).unlink(missing_ok=True)
            job.over_since = now if job.over_since is None else job.over_since
            return [] if now - job.over_since < _SECONDS_FOR_A_RESULT_TO_APPEAR else _untold_ends(job, job.runs)
        if len(job.runs) == 1:
            return []
        return [Ended(run, 0) for run in job.runs if state_of(run) == "complete"]

    def _notes(self, number: str) -> Path:
        return self._folder / f"{number}_runs.json"

    def _jobs_of_earlier_launchers(self) -> Iterator[Job]:
        import submitit

        for path in sorted(self._folder.glob("*_runs.json")):
            number = path.name.removesuffix("_runs.json")
            if self._queue.is_over(number):
                path.unlink()
            else:
                runs = [Path(name) for name in json.loads(path.read_text(encoding="utf-8"))]
                yield Job(submitit.SlurmJob(self._folder, number), runs)


def _told_ends(job: Job) -> list[Ended]:
    """How the runs of a job ended that left a result, by what it says."""
    if job.submitted.exception() is not None:
        return _untold_ends(job, job.runs)
    codes = job.submitted.result()
    told = [Ended(run, codes[str(run)]) for run in job.runs if str(run) in codes]
    return told + _untold_ends(job, [run for run in job.runs if str(run) not in codes])


def _untold_ends(job: Job, runs: Sequence[Path]) -> list[Ended]:
    """How runs ended whose job does not tell."""
    note = f"its job {job.number} ended without having finished it, see {job.submitted.paths.stderr}"
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
        "slurm_job_name": f"mtl-{folder.parent.name}",
        # Some clusters let a job come again only where it says that it may.
        "slurm_additional_parameters": {"requeue": True},
        # Since 22.05, srun does not take over what sbatch was told.
        "slurm_srun_args": None if settings.cpus is None else [f"--cpus-per-task={settings.cpus}"],
    }
    executor.update_parameters(**{name: value for name, value in asked.items() if value is not None})
    return executor
