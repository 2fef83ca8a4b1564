"""How jobs stand: asked of Slurm's queue, which every cluster has, where sacct needs an accounting that some lack."""

import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mtl.errors import ConfigError

_logger = logging.getLogger("mtl")

_SHORTEST_SECONDS_BETWEEN_QUESTIONS = 2.0
_LONGEST_SECONDS_BETWEEN_QUESTIONS = 30.0
_SHARE_OF_THE_TIME_SINCE_A_CHANGE = 0.1

_AT_WORK = ("RUNNING", "COMPLETING", "STOPPED", "SUSPENDED")


class JobQueue(Protocol):
    """Where the jobs are that have not ended."""

    def add(self, jobs: Sequence[Any]) -> None:
        """Take note of submitit's jobs that were just submitted."""
        ...

    def is_over(self, job: str) -> bool:
        """Whether the job is neither waiting nor at work any more."""
        ...

    def waits(self, job: str) -> bool:
        """Whether the job waits to begin, or to begin again."""
        ...

    def cancel(self, jobs: Sequence[str]) -> None:
        """End the jobs, and return when they have ended."""
        ...


class SlurmQueue:
    """The jobs of this user as ``squeue`` tells them; it is asked seldom, and less so the longer nothing changed.

    While it does not answer (a controller is being restarted, say), jobs are taken to be as they were.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ConfigError where Slurm does not answer."""
        self._clock = clock
        answer = _ask()
        if isinstance(answer, str):
            raise ConfigError(f"--launcher slurm: squeue does not answer here: {answer}")
        self._states = answer
        self._asked = self._changed = clock()
        self._answered = True

    def add(self, jobs: Sequence[Any]) -> None:
        self._states |= {str(job.job_id): "PENDING" for job in jobs}
        self._changed = self._clock()

    def is_over(self, job: str) -> bool:
        self._look()
        return job not in self._states

    def waits(self, job: str) -> bool:
        self._look()
        return job in self._states and self._states[job] not in _AT_WORK

    def cancel(self, jobs: Sequence[str]) -> None:
        """Slurm sends their processes SIGTERM, and SIGKILL when its KillWait is over."""
        if not jobs:
            return
        answer = subprocess.run(["scancel", *jobs], capture_output=True, text=True, check=False)
        if answer.returncode:
            _logger.warning("scancel: %s", answer.stderr.strip())
        while any(not self.is_over(job) for job in jobs):
            # Someone waits for this, so that it is worth asking often.
            self._changed = self._clock()
            time.sleep(_SHORTEST_SECONDS_BETWEEN_QUESTIONS)

    def _look(self) -> None:
        now = self._clock()
        pause = _SHARE_OF_THE_TIME_SINCE_A_CHANGE * (now - self._changed)
        pause = min(max(pause, _SHORTEST_SECONDS_BETWEEN_QUESTIONS), _LONGEST_SECONDS_BETWEEN_QUESTIONS)
        if now - self._asked < pause:
            return
        self._asked = now
        answer = _ask()
        if isinstance(answer, str):
            if self._answered:
                _logger.warning("squeue does not answer: %s; jobs are taken to be as they were", answer)
        elif answer != self._states:
            self._states, self._changed = answer, now
        self._answered = not isinstance(answer, str)


def _ask() -> dict[str, str] | str:
    """The state of each job of this user that is in the queue, or why that is not known."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i %T"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return answer.stderr.strip() or f"exit code {answer.returncode}"
    lines = (line.split() for line in answer.stdout.splitlines())
    return {words[0]: words[1] for words in lines if len(words) == 2}
