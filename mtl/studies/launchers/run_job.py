"""What a job of a cluster does: runs one after the other, saved where the job is about to end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from mtl.runtime.processes import is_running
from mtl.runtime.slurm_job import is_being_ended, own_job
from mtl.studies.launchers import STOPPED
from mtl.studies.launchers.worker import start_worker
from mtl.studies.run_state import state_of

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_BETWEEN_QUESTIONS = 2.0
_SECONDS_UNTIL_NOTICED = 1.0
_SECONDS_UNTIL_ENDED = 600.0

Request = tuple[str, str]
"""A run's settings file and its directory, as text: what a job is told travels by submitit's own files."""


class RunJob:
    """The work of one job: its runs one after the other, each resumed where it was begun; exit codes by directory.

    Slurm sends SIGTERM to all processes of a job that it cancels, requeues or pre-empts: the run at work saves itself,
    and no other is begun, since SIGKILL follows. Before a job's time is over, and on clusters that pre-empt so, it
    sends the signal by which submitit calls ``checkpoint``, and what that returns is put back into the queue. A job
    that comes again begins with whatever is not complete.
    """

    def __init__(self, requests: Sequence[Request], plugins: Sequence[str] = ()) -> None:
        self._requests, self._plugins = tuple(requests), tuple(plugins)
        self._process: subprocess.Popen[bytes] | None = None
        self._told_to_end = False

    def __call__(self) -> dict[str, int]:
        codes: dict[str, int] = {}
        with self._noticing_sigterm():
            for config, directory in self._requests:
                codes[directory] = code = self._carry_out(Path(config), Path(directory))
                if code in STOPPED or code < 0:
                    # It may have been quicker than this process, which was sent the same signal.
                    time.sleep(_SECONDS_UNTIL_NOTICED)
                if self._told_to_end and (code != 0 or len(codes) < len(self._requests)):
                    _wait_for_the_end()
                    break
        return codes

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
        self._process = start_worker(config, directory, self._plugins, _share_of_cores())
        return self._process.wait()

    @contextmanager
    def _noticing_sigterm(self) -> Iterator[None]:
        """Inside, SIGTERM is noted as well as handled as before."""
        before = signal.getsignal(signal.SIGTERM)

        def note(number: int, frame: FrameType | None) -> None:
            self._told_to_end = True
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def _wait_for_the_end() -> None:
    """Leave without a result once Slurm is ending the job: what returned would tell the launcher that the job is over,
    when it may be about to come again. A job that is pre-empted later must not end before. Returns if nothing follows.
    """
    job, since = own_job(), time.monotonic()
    while time.monotonic() - since < _SECONDS_UNTIL_ENDED:
        if job is not None and is_being_ended(job):
            sys.exit("this job is being ended by Slurm")
        time.sleep(_SECONDS_BETWEEN_QUESTIONS)


def _share_of_cores() -> dict[str, str]:
    """As many threads as the job was given cores: without binding, each job would take all cores of its node."""
    cores = os.environ.get("SLURM_CPUS_ON_NODE")
    return {"OMP_NUM_THREADS": cores} if cores and "OMP_NUM_THREADS" not in os.environ else {}
