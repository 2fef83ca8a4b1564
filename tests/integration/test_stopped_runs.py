"""A run that was stopped, however and whenever, ends as one that never was: bit for bit."""

import json
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from pydantic import JsonValue
from tiny_runs import (
    JOINT,
    TASKS,
    KilledError,
    assert_same_training,
    die_in_update,
    expect_stop,
    records,
    result_of,
    run_tiny,
    stop_after_update,
    stop_in_evaluation,
)

from mtl.api import register_weighting
from mtl.config.run import rebuild_models
from mtl.config.weighting import WEIGHTINGS as SETTINGS
from mtl.config.weighting import WeightingSettings
from mtl.errors import ConfigError, DataError, StoppedError
from mtl.rundir import RunDirectory, StageDirectory
from mtl.stages import pipeline, train_one
from mtl.weighting.registry import WEIGHTINGS

# A log record spans three updates, so that stops fall in the middle of one; 20 rows a task are used up several times.
LONG = ("stages=[joint]", "training.updates=22", "data.max_train_rows=20", "logging.every=3", "checkpoint.every=4")

SCENARIOS = {
    "pals": ("sampling.schedule.kind=pals", "sampling.schedule.epochs=5", "training.micro_batches=3"),
    "bf16": ("training.precision=bf16", "training.tokens_per_update=120", "training.combine=equal"),
    "holdout": ("selection.on=holdout", "evaluation.every=3", "checkpoint.keep=2", "weighting.kind=running_mean"),
    "task_best": ("selection.on=holdout", "evaluation.every=3", "finetune_from=task_best"),
    "exact_epoch": (
        "sampling.kind=exact_epoch",
        "evaluation.every=5",
        "evaluation.rows_during_training=30",
        "weighting.kind=schedule",
        "weighting.end={mini/similarity: 0.1}",
    ),
}


class RunningMeanSettings(WeightingSettings):
    kind: Literal["running_mean"] = "running_mean"


class RunningMean:
    """Divides each loss by its running mean: a state that every later update depends on."""

    needs: ClassVar[str] = "losses"

    def __init__(self, tasks: int) -> None:
        self.means = [1.0] * tasks

    def weights(self, step: int, present: np.ndarray, losses: torch.Tensor, gradients: None) -> torch.Tensor:
        for task in np.flatnonzero(present).tolist():
            self.means[task] = 0.9 * self.means[task] + 0.1 * float(losses[task])
        return 1.0 / torch.tensor(self.means)

    def after_step(self, losses_again: torch.Tensor | None) -> None: ...

    def parameters(self) -> list[torch.nn.Parameter]:
        return []

    def regulariser(self) -> None: ...

    def state_dict(self) -> dict[str, JsonValue]:
        return {"means": list(self.means)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.means = list(state["means"])


@pytest.fixture(scope="module", autouse=True)
def stateful_weighting() -> Iterator[None]:
    register_weighting(
        "running_mean", RunningMeanSettings, lambda settings, specs, sizes, total: RunningMean(len(specs))
    )
    yield
    for registry in (SETTINGS, WEIGHTINGS):
        del registry["running_mean"]
    rebuild_models()


def joint(out: Path) -> StageDirectory:
    return RunDirectory(out).stage("joint")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_stopped_run_ends_like_one_that_was_not(scenario: str, tmp_path: Path) -> None:
    overrides = (*LONG, *SCENARIOS[scenario])
    run_tiny(tmp_path / "whole", *overrides)
    stopped = tmp_path / "stopped"
    with pytest.MonkeyPatch.context() as patch:
        stop_after_update(patch, 4, signal.SIGTERM)
        expect_stop(stopped, *overrides, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        # Updates 12 and 13 are lost; the checkpoint of update 12 is what is left.
        die_in_update(patch, 13)
        with pytest.raises(KilledError):
            run_tiny(stopped, *overrides, resume=True)
    with pytest.MonkeyPatch.context() as patch:
        stop_after_update(patch, 18, signal.SIGINT)
        expect_stop(stopped, *overrides, resume=True, exit_code=130)
    result = run_tiny(stopped, *overrides, resume=True)
    assert result.status == "complete"
    assert result_of(stopped) == result_of(tmp_path / "whole")
    assert_same_training(joint(stopped), joint(tmp_path / "whole"))
    trained = [record["step"] for record in records(joint(stopped)) if "train/learning_rate" in record]
    assert trained == [3, 6, 9, 12, 15, 18, 21, 22]
    with np.load(joint(stopped).sequence) as sequence:
        assert sequence["cursors"].min() > 3 * 20


@pytest.mark.parametrize("split", [0, 1, 2, 3, 4])
def test_a_stop_in_an_evaluation_changes_nothing(split: int, joint_run: RunDirectory, tmp_path: Path) -> None:
    """Splits 0 and 1 are evaluated after update 3, 2 and 3 after update 6, 4 and 5 at the end."""
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_in_evaluation(patch, split, signal.SIGUSR1)
        expect_stop(out, *JOINT, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        # The evaluation that was broken off comes first, and is broken off again.
        stop_in_evaluation(patch, 0, signal.SIGTERM)
        expect_stop(out, *JOINT, resume=True)
    run_tiny(out, *JOINT, resume=True)
    assert result_of(out) == result_of(joint_run.path)
    assert_same_training(joint(out), joint_run.stage("joint"))


def test_a_stop_at_the_last_update_and_between_stages(full_run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_after_update(patch, 7, signal.SIGTERM)
        expect_stop(out, "seed=3", resume=False, tasks=TASKS)
    assert json.loads((out / "result.json").read_text())["stages"] == {}
    for stages_done in range(1, 3):
        with pytest.MonkeyPatch.context() as patch:
            # Three splits are scored for the stage single, then three for the stage joint.
            stop_in_evaluation(patch, 3 if stages_done == 1 else 0, signal.SIGTERM)
            expect_stop(out, "seed=3", resume=True, tasks=TASKS)
        assert list(json.loads((out / "result.json").read_text())["stages"]) == ["single"]
    run_tiny(out, "seed=3", resume=True, tasks=TASKS)
    assert result_of(out) == result_of(full_run.path)
    for stage in ("single", "finetune"):
        for task in TASKS:
            assert_same_training(RunDirectory(out).stage(stage, task), full_run.stage(stage, task))
    assert_same_training(joint(out), full_run.stage("joint"))


def test_a_stop_while_data_are_prepared_can_be_resumed(
    joint_run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*arguments: Any) -> None:
        raise StoppedError("stopped by SIGTERM")

    out = tmp_path / "run"
    overrides = ("stages=[joint]", "evaluation.every=3")
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "load_task_data", stopping)
        with pytest.raises(StoppedError):
            run_tiny(out, *overrides)
    run_tiny(out, *overrides, resume=True)
    assert result_of(out) == result_of(joint_run.path)


def test_resuming_a_finished_run_trains_nothing(
    joint_run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(joint_run.path, tmp_path / "run")
    die_in_update(monkeypatch, 0)
    stop_in_evaluation(monkeypatch, 0, signal.SIGTERM)
    # Settings that only say how to carry a run out may change: these, and the directory itself.
    overrides = ("stages=[joint]", "evaluation.every=3", "checkpoint.every=5", "logging.every=2")
    run_tiny(out, *overrides, resume=True)
    assert result_of(out) == result_of(joint_run.path)
    assert_same_training(joint(out), joint_run.stage("joint"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("optimizer.learning_rate=2e-3", "optimizer.learning_rate"),
        ("seed=2", "seed"),
        ("encoder.dropout=0.2", "encoder.dropout"),
        ("joint.sampling.kind=uniform", "sampling.kind"),
        ("tasks=[mini/entail2]", "tasks"),
        ("task_overrides={mini/entail2: {head: {dropout: 0.3}}}", "head.dropout"),
    ],
)
def test_a_changed_experiment_is_not_resumed(change: str, named: str, joint_run: RunDirectory, tmp_path: Path) -> None:
    out = shutil.copytree(joint_run.path, tmp_path / "run")
    before = (out / "config.yaml").read_bytes()
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        run_tiny(out, "stages=[joint]", "evaluation.every=3", change, resume=True)
    assert (out / "config.yaml").read_bytes() == before
    assert (out / "result.json").read_bytes() == joint_run.result.read_bytes()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"data": {}}, "data of mini/entail2, mini/similarity"),
        ({"encoder_sha256": "0"}, "encoder's weights"),
        ({"tokenizer_sha256": "0"}, "tokenizer"),
        ({}, "another version"),
    ],
)
def test_what_changed_under_a_run_is_named(
    changed: dict[str, Any], named: str, joint_run: RunDirectory, tmp_path: Path
) -> None:
    out = shutil.copytree(joint_run.path, tmp_path / "run")
    stored = json.loads((out / "environment.json").read_text())
    hashes = {} if "tokenizer_sha256" in changed else {"arm_hash": "0"}
    (out / "environment.json").write_text(json.dumps({**stored, **hashes, **changed}))
    with pytest.raises(ConfigError, match=named):
        run_tiny(out, *JOINT, resume=True)


def _interrupted(out: Path) -> Path:
    """A run of eight updates that died in the seventh, with checkpoints after the fourth and the sixth."""
    with pytest.MonkeyPatch.context() as patch:
        die_in_update(patch, 6)
        with pytest.raises(KilledError):
            run_tiny(out, *JOINT)
    checkpoints = joint(out).checkpoints
    assert sorted(path.name for path in checkpoints.iterdir()) == ["step-00000004", "step-00000006"]
    return checkpoints


def _flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_damaged_checkpoint_is_skipped(
    joint_run: RunDirectory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    _flip_a_bit(_interrupted(out) / "step-00000006/model.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        # A checkpoint older than the damaged one is made now: the damaged one must not be in its way.
        stop_after_update(patch, 4, signal.SIGTERM)
        expect_stop(out, *JOINT, resume=True)
    assert "step-00000006" in caplog.text
    run_tiny(out, *JOINT, resume=True)
    assert result_of(out) == result_of(joint_run.path)
    assert_same_training(joint(out), joint_run.stage("joint"))


def test_where_every_checkpoint_is_damaged_nothing_is_trained_anew(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for checkpoint in _interrupted(out).iterdir():
        _flip_a_bit(checkpoint / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"no checkpoint .* is whole"):
        run_tiny(out, *JOINT, resume=True)


def _die(*_: Any, **__: Any) -> None:
    raise KilledError


def test_damaged_weights_at_the_end_are_made_again(joint_run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_one, "score_dev", _die)
        with pytest.raises(KilledError):
            run_tiny(out, *JOINT)
    _flip_a_bit(out / "joint/checkpoints/last/heads.safetensors")
    run_tiny(out, *JOINT, resume=True)
    assert result_of(out) == result_of(joint_run.path)
    assert_same_training(joint(out), joint_run.stage("joint"))


def test_an_error_in_training_leaves_no_thread_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    die_in_update(monkeypatch, 2)
    with pytest.raises(KilledError) as raised:
        run_tiny(tmp_path / "run", *JOINT)
    # The traceback is still held, and with it everything that the error passed through.
    assert raised.tb is not None
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]
