"""Studies on a real Slurm: jobs requeued, cancelled and out of time, launchers that die, and an end like inline.

`one_node_cluster.sh` starts a cluster for these tests alone and takes it down; it needs root, and Debian's slurm-wlm
and munge. The node is said to have four CPUs, so that it is the job array that keeps it to two jobs at a time.
"""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mtl.cli import main
from mtl.rundir import RunDirectory
from mtl.runtime.lock import holder_of
from mtl.runtime.processes import search_path
from mtl.runtime.slurm_job import is_over
from mtl.tasks import mini
from tests.integration.tiny_runs import TINY, assert_same_training, result_of

CLUSTER = Path(__file__).with_name("one_node_cluster.sh")
TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]

pytest.importorskip("submitit", reason="jobs of a cluster need submitit: pip install 'mtl[slurm]'")
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the daemons of a Slurm cluster need root"),
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here ({', '.join(MISSING)} missing): slurm-wlm and munge"),
    # Nothing here waits for a time, but for what jobs do, and they share few cores with other tests.
    pytest.mark.timeout(3000),
]

OVERRIDES = (
    *TINY,
    "tasks=[mini/entail2,mini/similarity]",
    "stages=[joint]",
    "training.device=cpu",
    "training.updates=60",
    "checkpoint.every=null",
)
# The module held_runs of this folder.
PLUGIN = ("--plugin", "held_runs")
ASKED = ("at_once=2", "cpus=1", "gres=place:1", "partition=main", "minutes=60", "setup=echo prepared")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """SLURM_CONF names a cluster with nothing to do; nothing is left of it."""
    parent = Path(tempfile.mkdtemp(prefix="mtl-slurm-"))
    with pytest.MonkeyPatch.context() as patch:
        try:
            subprocess.run([CLUSTER, "up", parent / "one"], check=True)
            patch.setenv("SLURM_CONF", str(parent / "one" / "slurm.conf"))
            yield
        finally:
            subprocess.run([CLUSTER, "down", parent / "one"], check=True)
            parent.rmdir()


def write_study(folder: Path, arms: int) -> Path:
    """Arms of different learning rates, one seed; the first ones are the same in every study."""
    rates = {f"rate{number}": [f"optimizer.learning_rate={number}e-3"] for number in range(1, arms + 1)}
    document = {"name": "jobs", "question": "q", "base": [], "overrides": OVERRIDES, "arms": rates, "seeds": ["1"]}
    (folder / "empty.yaml").write_text("")
    path = folder / "study.yaml"
    path.write_text(json.dumps(document | {"base": [str(folder / "empty.yaml")]}))
    return path


@pytest.fixture(scope="module")
def inline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of six arms, in this process."""
    folder = tmp_path_factory.mktemp("inline")
    with pytest.MonkeyPatch.context() as patch:
        # Every start generates the rows to know their fingerprint.
        patch.setattr(mini, "generate", functools.cache(mini.generate))
        assert main(["study", str(write_study(folder, 6)), "--out", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(autouse=True)
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """While this file is there, trainings wait after their first update."""
    path = tmp_path / "hold"
    path.touch()
    monkeypatch.setenv("MTL_TEST_HOLD", str(path))
    return path


def command(study: Path, out: Path, *asked: str) -> list[str]:
    words = ["study", str(study), "--out", str(out), "--launcher", "slurm"]
    for key, value in dict(setting.split("=", 1) for setting in (*ASKED, *asked)).items():
        words += ["--slurm", f"{key}={value}"]
    return words


@contextmanager
def launcher(study: Path, out: Path, *asked: str) -> "Iterator[subprocess.Popen[bytes]]":
    """``mtl study --launcher slurm`` in a process of its own, its runs held; its words are in launcher.txt."""
    words = [*command(study, out, *asked), *PLUGIN]
    with (study.parent / "launcher.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mtl", *words],
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(CLUSTER.parent), search_path()))},
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def said(study: Path) -> str:
    return (study.parent / "launcher.txt").read_text()


def slurm(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{' '.join(command)}: {answer.stderr}"
    return answer.stdout


def states() -> list[str]:
    return slurm("squeue", "--array", "--noheader", "--format=%T").split()


def shown(out: Path) -> tuple[int, int]:
    """How many runs status.json says are running, and queued."""
    counts = json.loads((out / "status.json").read_text())["counts"]
    return counts["running"], counts["queued"]


def restarts(job: str) -> int:
    found = re.search(r"Restarts=(\d+)", slurm("scontrol", "--oneliner", "show", "job", job))
    assert found is not None
    return int(found[1])


def run_of(out: Path, arm: int) -> RunDirectory:
    (path,) = out.glob(f"runs/rate{arm}/seed-1-*")
    return RunDirectory(path)


def job_of(out: Path, run: RunDirectory) -> str:
    notes = {path.name.removesuffix("_runs.json"): path.read_text() for path in out.glob("slurm/*_runs.json")}
    (job,) = [name for name, runs in notes.items() if str(run.path) in runs]
    return job


def in_training(out: Path) -> list[int]:
    """The arms whose runs have logged an update and are at work."""
    logs = out.glob("runs/rate*/*/joint/metrics.jsonl")
    at_work = [log for log in logs if b'"train/' in log.read_bytes() and (log.parents[1] / "run.lock").exists()]
    return sorted(int(log.parents[2].name.removeprefix("rate")) for log in at_work)


def wait_for(condition: Callable[[], object], process: "subprocess.Popen[bytes]", study: Path) -> None:
    """Return once the condition holds; the launcher must not end before."""
    while not condition():
        assert process.poll() is None, said(study)
        time.sleep(0.05)


def assert_equal_to_inline(out: Path, inline: Path, arms: Sequence[int]) -> None:
    """Scores, weights, logs and predictions of each run."""
    for arm in arms:
        run, other = run_of(out, arm), run_of(inline, arm)
        assert run.path.name == other.path.name
        assert result_of(run.path)["status"] == "complete"
        assert result_of(run.path) == result_of(other.path)
        assert_same_training(run.stage("joint"), other.stage("joint"))


def test_six_runs_of_which_one_is_requeued_and_one_cancelled(
    tmp_path: Path, hold: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = write_study(tmp_path, 6), tmp_path / "out"
    with launcher(study, out) as process:
        # The jobs are held meanwhile.
        inline = request.getfixturevalue("inline")
        wait_for(lambda: len(in_training(out)) == 2, process, study)
        wait_for(lambda: shown(out) == (2, 4), process, study)
        requeued, cancelled = (run_of(out, arm) for arm in in_training(out))
        again, gone = job_of(out, requeued), job_of(out, cancelled)
        holder = holder_of(requeued.lock)
        assert holder is not None
        assert holder.job is not None
        assert not is_over(holder.job)
        slurm("scontrol", "requeue", again)
        slurm("scancel", gone)
        hold.unlink()
        most = 0
        while process.poll() is None:
            most = max(most, states().count("RUNNING"))
            time.sleep(0.2)
        assert process.returncode == 1, said(study)
    assert most == 2
    assert restarts(again) == 1
    assert "5 of 6 runs are complete" in said(study)
    assert f"its job {gone} ended without having finished it" in said(study)
    for run in (requeued, cancelled):
        assert "stopped by SIGTERM" in run.log.read_text()
    assert result_of(cancelled.path)["status"] == "stopped"
    assert is_over(holder.job)
    assert main(command(study, out)) == 0
    assert "6 of 6 runs are complete, 1 of them since this start" in capsys.readouterr().err
    assert [requeued.log.read_text().count("joint: training"), restarts(again)] == [2, 1]
    assert_equal_to_inline(out, inline, range(1, 7))
    assert all("prepared" in path.read_text() for path in out.glob("slurm/*_log.out"))
    arrays = sorted(out.glob("slurm/*_submission.sh"))
    assert main(command(study, out)) == 0
    assert sorted(out.glob("slurm/*_submission.sh")) == arrays
    assert not list(out.glob("slurm/*_runs.json"))


def test_a_launcher_that_dies_a_job_out_of_time_and_ctrl_c(tmp_path: Path, inline: Path, hold: Path) -> None:
    study, out = write_study(tmp_path, 2), tmp_path / "out"
    with launcher(study, out) as process:
        wait_for(lambda: in_training(out) == [1, 2], process, study)
    first, second = run_of(out, 1), run_of(out, 2)
    jobs = [job_of(out, run) for run in (first, second)]
    assert len(states()) == 2
    with launcher(study, out) as process:
        wait_for(lambda: "is in the queue still" in said(study), process, study)
        # What Slurm sends to a job whose time is nearly over.
        slurm("scancel", "--signal=USR2", jobs[0])
        wait_for(lambda: first.log.read_text().count("joint: training") == 2, process, study)
        wait_for(lambda: in_training(out) == [1, 2], process, study)
        assert [restarts(job) for job in jobs] == [1, 0]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130, said(study)
    assert states() == []
    assert "the same command goes on from there" in said(study)
    assert not list(out.glob("runs/*/*/run.lock"))
    assert {result_of(run.path)["status"] for run in (first, second)} == {"stopped"}
    hold.unlink()
    # Two at once, which share the runs.
    with launcher(study, out, "runs_per_job=2") as process, launcher(study, out) as another:
        assert [process.wait(), another.wait()] == [0, 0], said(study)
    # Each was begun, stopped as often as it was told to, and gone on with.
    assert [run.log.read_text().count("joint: training") for run in (first, second)] == [3, 2]
    assert "in use" not in first.log.read_text() + second.log.read_text()
    assert_equal_to_inline(out, inline, (1, 2))


def test_what_slurm_refuses_is_quoted(tmp_path: Path) -> None:
    study = write_study(tmp_path, 1)
    with launcher(study, tmp_path / "out", "gres=place:5") as process:
        assert process.wait() == 2, said(study)
    assert "sbatch does not take the jobs" in said(study)
    assert "Traceback" not in said(study)
