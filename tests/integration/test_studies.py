"""Studies of real, tiny runs: in this process, in others, broken off in every way, and by two launchers at once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import TINY, assert_same_training, result_of

from mtl import api
from mtl.cli import main
from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.runtime.processes import search_path

OVERRIDES = (*TINY, "tasks=[mini/entail2,mini/similarity]", "stages=[joint]", "training.device=cpu")
LONGER = ("training.updates=60", "checkpoint.every=10")


def write_study(path: Path, *overrides: str, **changes: Any) -> Path:
    """A study of two arms and two seeds, a third arm that equals the first, as YAML (which JSON is)."""
    document = {
        "name": "tiny",
        "question": "Which sampler?",
        "base": [str(path.parent / "empty.yaml")],
        "overrides": [*OVERRIDES, *overrides],
        "arms": {"even": ["sampling=uniform"], "sizes": [], "same": ["sampling.kind=uniform"]},
        "seeds": 2,
        "equal": "updates",
        "baseline": "sizes",
        "primary": {"arm": "even", "stage": "joint", "score": "mini"},
    }
    (path.parent / "empty.yaml").write_text("")
    path.write_text(json.dumps({**document, **changes}))
    return path


def command(study: Path, out: Path, *flags: str) -> list[str]:
    return ["study", str(study), "--out", str(out), *flags]


@contextmanager
def started(study: Path, out: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """``mtl study`` with two workers, in a process group of its own; it is gone at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "mtl", *command(study, out, "--launcher", "local", "--workers", "2")],
        env=os.environ | {"PYTHONPATH": search_path()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def directories(out: Path) -> list[Path]:
    return sorted(out.glob("runs/*/seed-*"))


def written(out: Path) -> dict[str, int]:
    """When each file of each run was written last."""
    return {str(path): path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()}


def assert_same_runs(first: Path, second: Path) -> None:
    assert [path.relative_to(first) for path in directories(first)] == [
        path.relative_to(second) for path in directories(second)
    ]
    for one, other in zip(directories(first), directories(second), strict=True):
        assert result_of(one)["status"] == "complete"
        assert result_of(one) == result_of(other)
        assert_same_training(RunDirectory(one).stage("joint"), RunDirectory(other).stage("joint"))


def trainings(out: Path) -> list[int]:
    """How often each run's log says that a training began."""
    return [(path / "log.txt").read_text().count("joint: training") for path in directories(out)]


def in_training(out: Path) -> list[Path]:
    """The runs that have logged an update."""
    logs = {path: path / "joint" / "metrics.jsonl" for path in directories(out)}
    return [path for path, log in logs.items() if log.is_file() and b'"train/' in log.read_bytes()]


def wait_for_training(process: "subprocess.Popen[bytes]", out: Path, number: int) -> None:
    """Return once ``number`` runs have logged an update."""
    while len(in_training(out)) < number:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of longer runs that nothing disturbed, in one process."""
    out = tmp_path_factory.mktemp("whole")
    assert main(command(write_study(out / "study.yaml", *LONGER), out / "out")) == 0
    return out / "out"


def test_a_study_runs_once_shares_equal_runs_and_refuses_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = write_study(tmp_path / "study.yaml"), tmp_path / "out"
    assert main(command(study, out, "--dry-run")) == 0
    shown = capsys.readouterr().out
    assert "even, same" in shown
    assert "4 runs (3 arms, 2 seeds), 0 of them complete" in shown
    assert "primary comparison: mini of even (joint) against sizes (joint)" in shown
    assert not out.exists()
    assert main(command(study, out)) == 0
    assert "4 of 4 runs are complete, 4 of them since this start" in capsys.readouterr().err
    assert [path.parent.name for path in directories(out)] == ["even", "even", "sizes", "sizes"]
    assert trainings(out) == [1, 1, 1, 1]
    before = written(out)
    assert main(command(study, out)) == 0
    assert "4 of 4 runs are complete, 0 of them since this start" in capsys.readouterr().err
    assert written(out) == before
    assert len(api.results(out / "runs")["arm"].unique()) == 2
    write_study(study, "optimizer.learning_rate=5e-3")
    assert main(command(study, out)) == 2
    assert "arm even: optimizer.learning_rate: 0.001 -> 0.005" in capsys.readouterr().err
    write_study(study, seeds=3)
    assert main(command(study, out)) == 0
    assert len(directories(out)) == 6
    assert {name: stamp for name, stamp in written(out).items() if name in before} == before


# Each process takes seconds to start, and longer where others are at work.
@pytest.mark.timeout(400)
def test_a_launcher_killed_twice_ends_like_one_that_was_not(whole: Path, tmp_path: Path) -> None:
    study, out = write_study(tmp_path / "study.yaml", *LONGER), tmp_path / "out"
    draws = random.Random(7)
    for number in (1, 2):
        with started(study, out) as process:
            wait_for_training(process, out, number)
            time.sleep(draws.uniform(0, 2))
            os.killpg(process.pid, signal.SIGKILL)
        if sys.platform.startswith("linux"):
            # The workers are told by the system, and save themselves.
            while list(out.glob("runs/*/*/run.lock")):
                time.sleep(0.05)
            assert {result_of(path)["status"] for path in in_training(out)} <= {"stopped", "complete"}
    with started(study, out) as process:
        message = process.communicate()[1].decode()
    assert process.returncode == 0, message
    assert_same_runs(out, whole)


@pytest.mark.timeout(400)
def test_ctrl_c_to_the_launcher_saves_all_runs(whole: Path, tmp_path: Path) -> None:
    study, out = write_study(tmp_path / "study.yaml", *LONGER, "checkpoint.every=null"), tmp_path / "out"
    with started(study, out) as process:
        wait_for_training(process, out, 2)
        os.killpg(process.pid, signal.SIGINT)
        message = process.communicate()[1].decode()
    assert process.returncode == 130
    assert "Traceback" not in message
    assert "the same command goes on from there" in message
    assert not list(out.glob("runs/*/*/run.lock"))
    assert main(command(study, out)) == 0
    assert_same_runs(out, whole)


@pytest.mark.timeout(400)
def test_two_launchers_share_the_runs(whole: Path, tmp_path: Path) -> None:
    study, out = write_study(tmp_path / "study.yaml", *LONGER), tmp_path / "out"
    with started(study, out) as first, started(study, out) as second:
        messages = [process.communicate()[1].decode() for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], messages
    assert trainings(out) == [1, 1, 1, 1]
    assert "in use" not in "".join((path / "log.txt").read_text() for path in directories(out))
    assert_same_runs(out, whole)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("flags", [(), ("--launcher", "local", "--workers", "2")])
def test_a_failed_run_is_named_and_retried_when_asked(
    flags: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "glue" / "RTE"
    changes = {"arms": {"well": [], "badly": ["tasks=[mini/entail2,glue/rte]", f"data.root={tmp_path}"]}, "seeds": 1}
    study = write_study(tmp_path / "study.yaml", equal="none", baseline=None, primary=None, **changes)
    out = tmp_path / "out"
    assert main(command(study, out, *flags)) == 1
    message = capsys.readouterr().err
    (failed,) = out.glob("runs/badly/*")
    assert "1 of 2 runs are complete" in message
    assert "badly, seed 1: failed with exit code 3" in message
    assert str(failed / "log.txt") in message
    assert "glue/rte" in (failed / "log.txt").read_text()
    if flags:
        return
    before = written(out)
    assert main(command(study, out)) == 1
    assert written(out) == before
    tasks.mkdir(parents=True)
    for split in ("train", "dev"):
        rows = "".join(f"{row}\ta b {row}\tc {row}\t{('entailment', 'not_entailment')[row % 2]}\n" for row in range(20))
        (tasks / f"{split}.tsv").write_text("index\tsentence1\tsentence2\tlabel\n" + rows)
    assert main(command(study, out, "--retry-failed")) == 0
    assert not (failed / "failure.json").exists()


def test_a_run_starts_from_the_run_of_another_arm(tmp_path: Path) -> None:
    arms = {"on": ["init.from=arm:base", "sampling=uniform"], "base": []}
    study = write_study(tmp_path / "study.yaml", arms=arms, seeds=1, equal="none", baseline=None, primary=None)
    assert main(command(study, tmp_path / "out")) == 0
    (result,) = [result_of(path) for path in directories(tmp_path / "out") if path.parent.name == "on"]
    assert result["stages"]["joint"]["cost"]["inherited"]["init"]["updates"] == 8


def test_a_study_without_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sweep"
    (tmp_path / "tiny.yaml").write_text("")
    words = [
        "--from",
        str(tmp_path / "tiny.yaml"),
        "--grid",
        "sampling.temperature=1,5",
        "--seeds",
        "7,8",
        "--out",
        str(out),
    ]
    assert main(["study", *words, "--dry-run", *OVERRIDES]) == 0
    assert "What does sampling.temperature change" in capsys.readouterr().out
    assert main(["study", *words, *OVERRIDES, "training.updates=2"]) == 0
    assert sorted(path.relative_to(out / "runs").as_posix().rpartition("-")[0] for path in directories(out)) == [
        "temperature=1/seed-7",
        "temperature=1/seed-8",
        "temperature=5/seed-7",
        "temperature=5/seed-8",
    ]
    # Its file is a study like any other, and its directory is enough to go on with it, settings included.
    capsys.readouterr()
    assert main(["study", str(out)]) == 0
    assert "4 of 4 runs are complete, 0 of them since this start" in capsys.readouterr().err
    assert main(["study", str(out / "study.yaml"), "--out", str(out)]) == 0
    assert "4 of 4 runs are complete, 0 of them since this start" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["study"], "give one study file"),
        (["study", "a.yaml", "b.yaml"], "give one study file"),
        (["study", "nowhere.yaml"], "cannot be read"),
        (["study", "."], ". is a directory that no study was begun in"),
        (["study", "quickstart"], "it is --from quickstart with --grid key=a,b"),
        (["study", "a.yaml", "--from", "quickstart"], "both say what to run"),
        (["study", "a.yaml", "--seeds", "3"], "give one study file"),
        (["study", "--from", "quickstart", "--seeds", "3"], "--from needs --grid"),
        (["study", "--from", "quickstart", "--grid", "sampling.temperature", "--seeds", "1"], "is not key=value"),
        (["study", "--from", "quickstart", "--grid", "seed=1,2", "--seeds", "1"], "grid sets seed"),
        (["study", "--from", "quickstart", "--grid", "a=1", "--grid", "a=2", "--seeds", "1"], "names a twice"),
        (["study", "--from", "quickstart", "--grid", "sampling.temprature=1", "--seeds", "1"], "did you mean"),
        (["study", "--from", "quickstart", "--grid", "seed.x=1", "--seeds", "1", "--workers", "0"], "at least one"),
        (
            ["study", "--from", "quickstart", "--grid", "sampling=uniform", "--seeds", "1", "--workers", "2"],
            "for --launcher local",
        ),
        (
            ["study", "--from", "quickstart", "--grid", "sampling=uniform", "--seeds", "1", "--slurm", "gress=1"],
            "slurm.gres?",
        ),
    ],
)
def test_what_cannot_be_meant_is_exit_code_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_study_in_python(tmp_path: Path) -> None:
    from mtl.studies.spec import read_study

    study = read_study(write_study(tmp_path / "study.yaml", "training.updates=2", seeds=1))
    runs = api.study_runs(study, tmp_path / "out")
    outcome = api.study(study, tmp_path / "out")
    assert outcome.complete == tuple(run.directory for run in runs)
    with pytest.raises(ConfigError, match="for --launcher local"):
        api.study(study, tmp_path / "out", workers=3)
