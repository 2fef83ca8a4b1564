"""Runs small enough to be made by the dozen, ways to stop them, and what of two runs has to be equal."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtl.config.load import load_config
from mtl.config.run import RunConfig
from mtl.errors import StoppedError
from mtl.evaluation.evaluate import Evaluator
from mtl.records import ResultRecord
from mtl.rundir import StageDirectory
from mtl.runtime.checkpoint_files import load_document
from mtl.stages.pipeline import run_pipeline
from mtl.training.update import Updater
from tests.tiny_overrides import TINY as SMALL

ENTAIL, SIMILARITY, ACCEPTABILITY = TASKS = ("mini/entail2", "mini/similarity", "mini/acceptability")

TINY = (
    *SMALL,
    "data.max_length=64",
    "training.updates=8",
    "finetune.training.updates=3",
    "logging.every=1",
    "logging.tensorboard=false",
)

JOINT = ("stages=[joint]", "checkpoint.every=2", "checkpoint.keep=2", "evaluation.every=3")
"""What the fixture ``joint_run`` was made with."""


class KilledError(BaseException):
    """Stands for a death without warning: nothing catches it, so nothing is saved."""


def settings(out: Path, *overrides: str, tasks: Sequence[str] = TASKS[:2]) -> list[str]:
    """The assignments of a tiny run with dropout, on no recipe; those given last win."""
    return [*TINY, f"tasks=[{','.join(tasks)}]", f"out={out}", *overrides]


def tiny_config(out: Path, *overrides: str, tasks: Sequence[str] = TASKS[:2]) -> RunConfig:
    return load_config([], settings(out, *overrides, tasks=tasks))


def run_tiny(
    out: Path, *overrides: str, tasks: Sequence[str] = TASKS[:2], resume: bool = False, overwrite: bool = False
) -> ResultRecord:
    return run_pipeline(tiny_config(out, *overrides, tasks=tasks), resume=resume, overwrite=overwrite)


def stop_after_update(patch: pytest.MonkeyPatch, step: int, number: signal.Signals) -> None:
    """Send this process a signal as soon as it has trained update ``step`` (from 0)."""
    original = Updater.run

    def run(self: Updater, update: Any) -> Any:
        result = original(self, update)
        if update.step == step:
            os.kill(os.getpid(), number)
        return result

    patch.setattr(Updater, "run", run)


def die_in_update(patch: pytest.MonkeyPatch, step: int) -> None:
    """End the training inside update ``step`` (from 0) with no chance to save anything."""
    original = Updater.run

    def run(self: Updater, update: Any) -> Any:
        result = original(self, update)
        if update.step == step:
            raise KilledError
        return result

    patch.setattr(Updater, "run", run)


def stop_in_evaluation(patch: pytest.MonkeyPatch, call: int, number: signal.Signals) -> None:
    """Send this process a signal while the ``call``-th split (from 0) is evaluated, before its first batch."""
    original, calls = Evaluator.predict, iter(range(1_000_000))

    def predict(self: Evaluator, *arguments: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), number)
        return original(self, *arguments)

    patch.setattr(Evaluator, "predict", predict)


def wait_for_step(process: "subprocess.Popen[bytes]", out: Path, step: int) -> None:
    """Return once the process has logged update ``step``."""
    log, deadline = out / "joint/metrics.jsonl", time.monotonic() + 90
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1].decode()
        lines = log.read_bytes().splitlines() if log.is_file() else []
        if any(b'"train/' in line and json.loads(line)["step"] >= step for line in lines if line.endswith(b"}")):
            return
        time.sleep(0.005)
    pytest.fail(f"update {step} was not reached")


def expect_stop(
    out: Path, *overrides: str, resume: bool, exit_code: int = 75, tasks: Sequence[str] = TASKS[:2]
) -> None:
    """The run stops as asked, with the exit code of the signal, and its result says so."""
    with pytest.raises(StoppedError) as caught:
        run_tiny(out, *overrides, resume=resume, tasks=tasks)
    assert caught.value.exit_code == exit_code
    assert json.loads((out / "result.json").read_text())["status"] == "stopped"


def records(directory: StageDirectory) -> list[dict[str, Any]]:
    """The log of a training without its timings."""
    lines = directory.metrics.read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if not key.startswith("speed/")} for line in lines]


def weights(checkpoint: Path) -> dict[str, bytes]:
    return {name: (checkpoint / f"{name}.safetensors").read_bytes() for name in ("model", "heads")}


def checkpoints_kept(directory: StageDirectory) -> list[str]:
    """The weights that a training leaves for others: last, best, and those that were best for one task."""
    found = [*directory.checkpoints.glob("last"), *directory.checkpoints.glob("best")]
    found += directory.checkpoints.glob("best_for/*/*")
    return sorted(path.relative_to(directory.checkpoints).as_posix() for path in found)


def step_of(checkpoint: Path) -> int:
    """The number of updates that the weights at ``checkpoint`` have had."""
    state: Any = load_document(checkpoint, "state")
    return int(state["step"])


def without_seconds(value: Any) -> Any:
    """Plain data without the timings in it."""
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def result_of(out: Path) -> Any:
    return without_seconds(json.loads((out / "result.json").read_text()))


def assert_same_training(first: StageDirectory, second: StageDirectory) -> None:
    """Bit-equal weights, logs, predictions and task sequence."""
    assert records(first) == records(second)
    kept = checkpoints_kept(first)
    assert kept == checkpoints_kept(second)
    for name in kept:
        assert weights(first.checkpoints / name) == weights(second.checkpoints / name)
        assert step_of(first.checkpoints / name) == step_of(second.checkpoints / name)
    with np.load(first.sequence) as one, np.load(second.sequence) as other:
        assert {name: one[name].tolist() for name in one} == {name: other[name].tolist() for name in other}
    predictions = sorted(first.path.glob("predictions/*/*/*.parquet"))
    assert predictions
    for path in predictions:
        assert path.read_bytes() == (second.path / path.relative_to(first.path)).read_bytes()
