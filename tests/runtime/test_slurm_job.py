"""Whether a lock that another node left is still held: what Slurm says of its job decides, played by a script."""

import os
from pathlib import Path

import pytest

from mtl.errors import ConfigError
from mtl.runtime import slurm_job
from mtl.runtime.lock import Holder, RunLock, holder_of, is_taken
from mtl.runtime.slurm_job import SlurmJob, is_being_ended, is_over, own_job

JOB = SlurmJob(number="12", restarts=1, cluster="here")
CONFIG = "ClusterName             = here"


@pytest.fixture(autouse=True)
def asks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_job, "_answers", {})


def play(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, *, code: int = 0, config: str = CONFIG) -> None:
    """``scontrol`` says ``answer`` about a job, on stderr where it fails."""
    script = folder / "scontrol"
    where = ">&2" if code else ""
    script.write_text(
        f'#!/bin/sh\nif [ "$2" = config ]; then echo "{config}"; exit; fi\n'
        f"cat <<'END' {where}\n{answer}\nEND\nexit {code}\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("answer", "over"),
    [
        ("JobId=12 ArrayJobId=12 Restarts=1 JobState=RUNNING", False),
        ("JobId=12 Restarts=1 JobState=COMPLETING", False),
        ("JobId=12 Restarts=2 JobState=COMPLETING", False),
        ("JobId=12 Restarts=2 JobState=PENDING", True),
        ("JobId=12 Restarts=2 JobState=RUNNING", True),
        ("JobId=12 Restarts=1 JobState=NODE_FAIL", True),
        ("JobId=12 Restarts=1 JobState=A_NEW_ONE", False),
        # The number of an array is that of one of its jobs.
        ("JobId=11 Restarts=1 JobState=COMPLETED\nJobId=12 Restarts=1 JobState=RUNNING", False),
        ("JobId=11 Restarts=1 JobState=RUNNING\nJobId=12 Restarts=1 JobState=COMPLETED", True),
        ("nothing that is known", False),
    ],
)
def test_a_job_is_over_when_none_of_its_processes_can_be_left(
    answer: str, over: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, monkeypatch, answer)
    assert is_over(JOB) is over


def test_what_slurm_forgot_is_over_and_what_it_does_not_know_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, monkeypatch, "slurm_load_jobs error: Invalid job id specified", code=1)
    assert is_over(JOB)
    assert not is_over(JOB.model_copy(update={"cluster": "there"}))
    play(tmp_path, monkeypatch, "slurm_load_jobs error: Unable to contact slurm controller", code=1)
    slurm_job._answers.clear()
    assert not is_over(JOB)
    monkeypatch.setenv("PATH", "")
    slurm_job._answers.clear()
    assert not is_over(JOB)


@pytest.mark.parametrize(("state", "ending"), [("COMPLETING", True), ("RUNNING", False), ("PENDING", False)])
def test_a_job_that_slurm_ends(state: str, ending: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(tmp_path, monkeypatch, f"JobId=12 Restarts=1 JobState={state}")
    assert is_being_ended(JOB) is ending
    play(tmp_path, monkeypatch, "slurm_load_jobs error: Invalid job id specified", code=1)
    assert not is_being_ended(JOB)


def test_a_lock_of_another_node_is_taken_over_when_its_job_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "run.lock"
    holder = Holder(host="another-node", pid=1, process_start=1, command="mtl run", token="t", job=JOB)
    lock.write_text(holder.model_dump_json())
    play(tmp_path, monkeypatch, "JobId=12 Restarts=1 JobState=RUNNING")
    assert is_taken(lock)
    with pytest.raises(ConfigError, match="on another-node"):
        RunLock(lock).__enter__()
    play(tmp_path, monkeypatch, "JobId=12 Restarts=1 JobState=NODE_FAIL")
    slurm_job._answers.clear()
    assert not is_taken(lock)
    with RunLock(lock):
        assert is_taken(lock)
    lock.write_text(holder.model_copy(update={"job": None}).model_dump_json())
    assert is_taken(lock)


def test_a_lock_names_the_job_of_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_CLUSTER_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert own_job() is None
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert own_job() == SlurmJob(number="7", restarts=0, cluster="")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "3")
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "here")
    with RunLock(tmp_path / "run.lock"):
        holder = holder_of(tmp_path / "run.lock")
    assert holder is not None
    assert holder.job == SlurmJob(number="7", restarts=3, cluster="here")
