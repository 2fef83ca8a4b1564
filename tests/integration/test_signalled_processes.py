"""The command line under real signals, and two processes that want one directory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tiny_runs import assert_same_training, records, result_of, run_tiny, settings, wait_for_step

from mtl.errors import ConfigError
from mtl.rundir import RunDirectory

OVERRIDES = ("stages=[joint]", "training.updates=150", "checkpoint.every=3", "evaluation.every=40")


@contextmanager
def started(out: Path, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    """``mtl run`` in a process of its own, which is gone at the end."""
    command = [sys.executable, "-m", "mtl", "run", *settings(out, *OVERRIDES), *flags]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_signals_kills_and_locks_of_processes(tmp_path: Path) -> None:
    """One training through four processes, each stopped in another way, then finished in this one."""
    out = tmp_path / "run"
    run_tiny(tmp_path / "whole", *OVERRIDES)
    for number, step, code in ((signal.SIGTERM, 5, 75), (signal.SIGINT, 35, 130), (signal.SIGUSR1, 65, 75)):
        with started(out, *(["--resume"] if step > 5 else [])) as process:
            wait_for_step(process, out, step)
            process.send_signal(number)
            message = process.communicate(timeout=60)[1].decode()
            assert process.returncode == code
        assert f"stopped by {number.name}" in message
        assert "Traceback" not in message
        assert json.loads((out / "result.json").read_text())["status"] == "stopped"
        assert not (out / "run.lock").exists()
    with started(out, "--resume") as process:
        wait_for_step(process, out, 100)
        for resume, overwrite in ((True, False), (False, True), (False, False)):
            with pytest.raises(ConfigError, match=f"in use by process {process.pid}"):
                run_tiny(out, *OVERRIDES, resume=resume, overwrite=overwrite)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    assert (out / "run.lock").exists()
    run_tiny(out, *OVERRIDES, resume=True)
    assert not (out / "run.lock").exists()
    assert result_of(out) == result_of(tmp_path / "whole")
    assert_same_training(RunDirectory(out).stage("joint"), RunDirectory(tmp_path / "whole").stage("joint"))
    steps = [record["step"] for record in records(RunDirectory(out).stage("joint")) if "train/learning_rate" in record]
    assert steps == list(range(1, 151))
