"""Which jobs are submitted, which are waited for, and how they end, with Slurm's commands played by small scripts."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic_results import a_result
from test_expand import study

from mtl.errors import ConfigError
from mtl.records import write_result
from mtl.rundir import RunDirectory
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.launchers import Ended, Start
from mtl.studies.launchers import slurm as launching
from mtl.studies.launchers.job_queue import SlurmQueue
from mtl.studies.launchers.slurm import SlurmLauncher
from mtl.studies.spec import SlurmSettings

pytest.importorskip("submitit", reason="jobs of a cluster need submitit: pip install 'mtl[slurm]'")

# Each of these stands for one command: sbatch counts its calls and keeps what it was given, squeue prints a file.
SCRIPTS = {
    "srun": "exit 1",
    "sbatch": 'n=$(ls "$PLAYED" | grep -c script); cp "$1" "$PLAYED/script$n"; echo "Submitted batch job $((n + 1))"',
    "squeue": 'cat "$PLAYED/queue"',
    "scancel": 'echo "$@" > "$PLAYED/cancelled"; : > "$PLAYED/queue"',
}


class PlayedSlurm:
    """A directory of scripts and what they leave."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.show()
        for name, text in SCRIPTS.items():
            self.play(name, text)

    def play(self, name: str, text: str) -> None:
        (self.path / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.path / name).chmod(0o755)

    def show(self, **states: str) -> None:
        """The jobs in the queue from now on, named as in ``j1_0``."""
        lines = [f"{name.removeprefix('j')} {state}\n" for name, state in states.items()]
        (self.path / "queue").write_text("".join(lines))

    @property
    def scripts(self) -> list[str]:
        return [path.read_text() for path in sorted(self.path.glob("script*"))]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedSlurm:
    played = PlayedSlurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(played.path), prepend=os.pathsep)
    monkeypatch.setenv("PLAYED", str(played.path))
    monkeypatch.setattr(launching, "_SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(launching, "_SECONDS_FOR_A_RESULT_TO_APPEAR", 0.0)
    monkeypatch.setattr("mtl.studies.launchers.job_queue._SHORTEST_SECONDS_BETWEEN_QUESTIONS", 0.0)
    monkeypatch.setattr("mtl.studies.launchers.job_queue._LONGEST_SECONDS_BETWEEN_QUESTIONS", 0.0)
    return played


@pytest.fixture
def runs(tmp_path: Path) -> Sequence[PlannedRun]:
    return expand(study(arms={"a": ["sampling=uniform"], "b": []}, seeds="3"), tmp_path / "out")


def launcher_of(tmp_path: Path, **settings: object) -> SlurmLauncher:
    return SlurmLauncher(tmp_path / "out" / "slurm", SlurmSettings.model_validate(settings))


def start(launcher: SlurmLauncher, runs: Sequence[PlannedRun]) -> None:
    for run in runs:
        launcher.start(Start(run, run.directory.with_suffix(".yaml")))


def complete(run: PlannedRun) -> None:
    run.directory.mkdir(parents=True)
    write_result(RunDirectory(run.directory).result, a_result({"joint": (("mini/entail2", 50.0, 400, 400),)}))


def test_what_jobs_ask_for(tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]) -> None:
    asked = {"partition": "gpu", "account": "lab", "qos": "low", "gres": "gpu:1", "minutes": 90, "cpus": 4}
    launcher = launcher_of(tmp_path, **asked, at_once=3, runs_per_job=2, memory_gb=1.5, setup=["module load cuda"])
    start(launcher, runs)
    launcher.ended()
    (text,) = slurm.scripts
    lines = text.splitlines()
    for flag in ("partition=gpu", "account=lab", "qos=low", "gres=gpu:1", "time=90", "cpus-per-task=4", "mem=1536MB"):
        assert f"#SBATCH --{flag}" in lines
    for flag in ("array=0-2%3", "requeue", "job-name=mtl-out", "signal=USR2@90", "open-mode=append"):
        assert f"#SBATCH --{flag}" in lines
    assert "module load cuda" in lines
    assert " --cpus-per-task=4 " in lines[lines.index("# command") + 2]


def test_later_arrays_leave_the_jobs_of_earlier_ones_their_places(
    tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]
) -> None:
    launcher = launcher_of(tmp_path, at_once=2)
    start(launcher, runs[:3])
    slurm.show(j1_0="RUNNING", j1_1="RUNNING", j1_2="PENDING")
    assert launcher.ended() == []
    start(launcher, runs[3:])
    assert launcher.ended() == []
    assert len(slurm.scripts) == 1
    assert launcher.queued() == {run.directory for run in runs[2:]}
    slurm.show(j1_1="RUNNING", j2="PENDING")
    assert {end.directory for end in launcher.ended()} == {runs[0].directory, runs[2].directory}
    assert launcher.queued() == {run.directory for run in runs[3:]}
    slurm.show(j1_1="RUNNING", j2="RUNNING")
    assert launcher.ended() == []
    assert len(slurm.scripts) == 2
    assert launcher.queued() == {run.directory for run in runs[4:]}


def test_jobs_that_end_without_a_result_are_judged_by_their_runs(
    tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]
) -> None:
    launcher = launcher_of(tmp_path, runs_per_job=2)
    start(launcher, runs[:4])
    slurm.show(j1_0="RUNNING", j1_1="PENDING")
    assert launcher.ended() == []
    assert launcher.queued() == {run.directory for run in runs[1:4]}
    complete(runs[0])
    assert launcher.ended() == [Ended(runs[0].directory, 0)]
    assert launcher.queued() == {run.directory for run in runs[2:4]}
    slurm.show(j1_1="PENDING")
    (end,) = launcher.ended()
    assert end.directory == runs[1].directory
    assert end.note is not None
    assert end.note.startswith("its job 1_0 ended without having finished it, see ")
    assert launcher.room() == 498


def test_the_result_of_a_job_counts_unless_it_is_an_error_and_the_job_comes_again(
    tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]
) -> None:
    from submitit.core.utils import cloudpickle_dump

    launcher = launcher_of(tmp_path)
    start(launcher, runs[:2])
    slurm.show(j1_0="PENDING", j1_1="RUNNING")
    assert launcher.ended() == []
    cloudpickle_dump(("error", "scontrol was killed"), tmp_path / "out" / "slurm" / "1_0_0_result.pkl")
    cloudpickle_dump(("success", {str(runs[1].directory): 3}), tmp_path / "out" / "slurm" / "1_1_0_result.pkl")
    assert launcher.ended() == [Ended(runs[1].directory, 3)]
    assert launcher.ended() == []
    slurm.show()
    (end,) = launcher.ended()
    assert (end.directory, end.exit_code) == (runs[0].directory, 1)


def test_a_later_launcher_waits_for_the_jobs_of_one_that_died(
    tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]
) -> None:
    first = launcher_of(tmp_path, at_once=2)
    start(first, runs[:3])
    slurm.show(j1_0="RUNNING", j1_1="RUNNING", j1_2="PENDING")
    assert first.ended() == []
    slurm.show(j1_0="RUNNING", j1_1="PENDING")
    later = launcher_of(tmp_path, at_once=2)
    notes = sorted(path.name for path in (tmp_path / "out" / "slurm").glob("*.json"))
    assert notes == ["1_0_runs.json", "1_1_runs.json"]
    assert [later.takes_over(run.directory) for run in runs[:3]] == [True, True, False]
    start(later, runs[:3])
    assert later.ended() == []
    # Both places are taken.
    assert len(slurm.scripts) == 1
    slurm.show(j1_1="RUNNING", j2="PENDING")
    complete(runs[0])
    assert later.ended() == [Ended(runs[0].directory, 0)]
    assert later.ended() == []
    assert len(slurm.scripts) == 2
    later.stop()
    assert (slurm.path / "cancelled").read_text().split() == ["1_1", "2"]
    assert list((tmp_path / "out" / "slurm").glob("*.json")) == []


def test_sbatch_that_refuses_is_quoted(tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]) -> None:
    slurm.play("sbatch", "echo 'sbatch: error: invalid partition specified: nowhere' >&2; exit 1")
    launcher = launcher_of(tmp_path, partition="nowhere")
    start(launcher, runs[:2])
    with pytest.raises(ConfigError, match=r"does not take the jobs.*invalid partition specified: nowhere"):
        launcher.ended()
    assert launcher.jobs == []


def test_a_queue_that_does_not_answer_changes_nothing(slurm: PlayedSlurm, caplog: pytest.LogCaptureFixture) -> None:
    slurm.show(j1="RUNNING", j2="PENDING")
    queue = SlurmQueue()
    slurm.play("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    for _ in range(3):
        assert [queue.is_over(job) for job in ("1", "2", "3")] == [False, False, True]
        assert [queue.waits(job) for job in ("1", "2", "3")] == [False, True, False]
    (record,) = caplog.records
    assert "Unable to contact slurm controller" in record.getMessage()
    with pytest.raises(ConfigError, match="squeue does not answer here: Unable to contact"):
        SlurmQueue()


def test_the_queue_is_asked_less_often_the_longer_nothing_changes(slurm: PlayedSlurm) -> None:
    slurm.play("squeue", 'echo asked >> "$PLAYED/asked"; cat "$PLAYED/queue"')
    slurm.show(j1="RUNNING")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtl.studies.launchers.job_queue._SHORTEST_SECONDS_BETWEEN_QUESTIONS", 2.0)
        patch.setattr("mtl.studies.launchers.job_queue._LONGEST_SECONDS_BETWEEN_QUESTIONS", 30.0)
        now = 0.0
        queue = SlurmQueue(lambda: now)
        asked = []
        for second in range(1000):
            now = float(second)
            assert not queue.is_over("1")
            asked.append(len((slurm.path / "asked").read_text().split()))
        slurm.show()
        now = 2000.0
        assert queue.is_over("1")
    assert asked[10] == 6
    assert asked[999] - asked[699] == 10


def test_notes_name_the_runs_of_their_job(tmp_path: Path, slurm: PlayedSlurm, runs: Sequence[PlannedRun]) -> None:
    launcher = launcher_of(tmp_path, runs_per_job=2)
    start(launcher, runs[:3])
    slurm.show(j1_0="RUNNING", j1_1="PENDING")
    launcher.ended()
    folder = tmp_path / "out" / "slurm"
    names = [json.loads((folder / f"1_{number}_runs.json").read_text()) for number in (0, 1)]
    assert names == [[str(run.directory) for run in runs[:2]], [str(runs[2].directory)]]
