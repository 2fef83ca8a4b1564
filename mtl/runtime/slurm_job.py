"""Which job of a Slurm cluster this process belongs to, and whether another one is over: a node can die with its jobs,
and what they held must not be held for ever.
"""

import os
import re
import shutil
import subprocess
import time

from pydantic import BaseModel, ConfigDict

_SECONDS_UNTIL_ASKED_AGAIN = 10.0
_WITHOUT_PROCESSES = (
    "PENDING",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "DEADLINE",
    "NODE_FAIL",
    "BOOT_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
)
_answers: "dict[SlurmJob, tuple[float, bool]]" = {}


class SlurmJob(BaseModel):
    """A job by its number, and how often it had been put back into the queue: each time its processes are others.

    A number counts for one ``cluster`` only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: str
    restarts: int
    cluster: str


def own_job() -> SlurmJob | None:
    """The job that this process belongs to; None outside of one."""
    number = os.environ.get("SLURM_JOB_ID")
    if number is None:
        return None
    return SlurmJob(
        number=number,
        restarts=int(os.environ.get("SLURM_RESTART_COUNT", "0")),
        cluster=os.environ.get("SLURM_CLUSTER_NAME", ""),
    )


def is_over(job: SlurmJob) -> bool:
    """Whether all processes of ``job`` are known to be gone: it has ended, or is in the queue again, or came again.

    False where nothing is known: outside of its cluster, or while Slurm does not answer. Slurm is asked about a job
    once in some seconds only.
    """
    asked, answer = _answers.get(job, (float("-inf"), False))
    if time.monotonic() - asked >= _SECONDS_UNTIL_ASKED_AGAIN:
        answer = _is_over(job)
        _answers[job] = time.monotonic(), answer
    return answer


def is_being_ended(job: SlurmJob) -> bool:
    """Whether Slurm is about to kill what ``job`` still has of processes; False where that is not known."""
    return (_fields(job) or {}).get("JobState") == "COMPLETING"


def _is_over(job: SlurmJob) -> bool:
    found = _fields(job)
    if found is None:
        return True
    if int(found.get("Restarts", "0")) > job.restarts:
        return found["JobState"] != "COMPLETING"
    return found.get("JobState") in _WITHOUT_PROCESSES


def _fields(job: SlurmJob) -> dict[str, str] | None:
    """What Slurm says of a job; nothing where it does not answer, None where it knows no such job (any more)."""
    if shutil.which("scontrol") is None or _cluster() != job.cluster:
        return {}
    command = ["scontrol", "--oneliner", "show", "job", job.number]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        # Some minutes after its end a job is forgotten.
        return None if "Invalid job id" in answer.stderr else {}
    # The number of an array is that of one of its jobs, and stands for all of them.
    jobs = (dict(re.findall(r"(\w+)=(\S*)", line)) for line in answer.stdout.splitlines())
    return next((fields for fields in jobs if fields.get("JobId") == job.number), {})


def _cluster() -> str | None:
    """The name of the cluster that answers here."""
    answer = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=False)
    found = re.search(r"^ClusterName\s*=\s*(\S+)", answer.stdout, re.MULTILINE)
    return found[1] if found and not answer.returncode else None
