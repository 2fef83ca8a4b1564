"""Each task's fine-tuning may start from the joint snapshot that was best for that task."""

import logging
import math
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import (
    ACCEPTABILITY,
    ENTAIL,
    SIMILARITY,
    TASKS,
    KilledError,
    assert_same_training,
    checkpoints_kept,
    die_in_update,
    expect_stop,
    records,
    result_of,
    run_tiny,
    step_of,
    stop_after_update,
    stop_in_evaluation,
    tiny_config,
)
from torch import Tensor

from mtl.config.load import load_config
from mtl.data.tokenizer import load_tokenizer
from mtl.errors import ConfigError, DataError
from mtl.rundir import RunDirectory, StageDirectory
from mtl.runtime.checkpoint_files import load_tensors
from mtl.stages import train_one
from mtl.stages.evaluate_run import evaluate_run
from mtl.stages.initial import load_initial_weights
from mtl.stages.models import model_tensors
from mtl.stages.scoring import Snapshot

TUNED = ("stages=[joint,finetune]", "joint.selection.on=holdout", "joint.evaluation.every=2")
TASK_BEST = (*TUNED, "finetune_from=task_best")

# After updates 2, 4, 6 and 8: each task is best elsewhere, one of them twice, and all together after update 4.
SCORES = {ENTAIL: (9.0, 8.0, 1.0, 1.0), SIMILARITY: (1.0, 7.0, 8.0, 8.0), ACCEPTABILITY: (1.0, 1.0, 2.0, 3.0)}
PEAKS = {ENTAIL: 2, SIMILARITY: 6, ACCEPTABILITY: 8}

Tensors = dict[str, dict[str, Tensor]]


def _copy(model: Any) -> Tensors:
    return {
        group: {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
        for group, tensors in model_tensors(model).items()
    }


def _equal(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(first[name].equal(second[name]) for name in first)


class Script:
    """Makes the joint stage score as written; notes its weights each time, and those every training starts with."""

    def __init__(self, patch: pytest.MonkeyPatch, scores: Mapping[str, Sequence[float]], first: int = 0) -> None:
        self.evaluated: list[Tensors] = []
        self.started: dict[str, Tensors] = {}
        build = train_one.build_parts

        def score_snapshot(model: Any, *_: Any, **__: Any) -> Snapshot:
            primaries = {task: column[first + len(self.evaluated)] for task, column in scores.items()}
            self.evaluated.append(_copy(model))
            known = {task: score for task, score in primaries.items() if not math.isnan(score)}
            values = {f"eval_holdout/{task}/primary": score for task, score in known.items()}
            return Snapshot(values, sum(known.values()), primaries)

        def build_parts(context: Any, unit: Any) -> Any:
            parts = build(context, unit)
            self.started[unit.title] = _copy(parts.model)
            return parts

        patch.setattr(train_one, "score_snapshot", score_snapshot)
        patch.setattr(train_one, "build_parts", build_parts)


def _joint(out: Path) -> StageDirectory:
    return RunDirectory(out).stage("joint")


def _peaks(directory: StageDirectory, tasks: Sequence[str]) -> dict[str, int]:
    """The update after which the log says that each task scored best, the first of several."""
    log = records(directory)
    seen = {
        task: [(line[key], line["step"]) for line in log if key in line]
        for task in tasks
        for key in [f"eval_holdout/{task}/primary"]
    }
    return {task: max(scores, key=lambda pair: (pair[0], -pair[1]))[1] for task, scores in seen.items()}


def _assert_starts_from(script: Script, task: str, checkpoint: Path) -> None:
    started = script.started[f"finetune {task}"]
    assert _equal(started["model"], load_tensors(checkpoint, "model"))
    heads = load_tensors(checkpoint, "heads")
    assert _equal(started["heads"], {name: heads[name] for name in heads if name.startswith(f"{task}/")})


def test_every_task_starts_where_it_scored_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out, script = tmp_path / "run", Script(monkeypatch, SCORES)
    with caplog.at_level(logging.INFO, logger="mtl"):
        result = run_tiny(out, *TASK_BEST, tasks=TASKS)
    joint = _joint(out)
    assert checkpoints_kept(joint) == sorted(["best", "last", *(f"best_for/{task}" for task in TASKS)])
    assert _peaks(joint, TASKS) == PEAKS
    for task in TASKS:
        checkpoint = joint.best_for(task)
        assert step_of(checkpoint) == PEAKS[task]
        at_its_best = script.evaluated[PEAKS[task] // 2 - 1]
        assert _equal(load_tensors(checkpoint, "model"), at_its_best["model"])
        assert _equal(load_tensors(checkpoint, "heads"), at_its_best["heads"])
        _assert_starts_from(script, task, checkpoint)
        assert not _equal(
            script.started[f"finetune {task}"]["model"], load_tensors(joint.checkpoints / "best", "model")
        )
        assert f"{task}: fine-tuning starts from {checkpoint}" in caplog.text
    # What the joint stage is scored by stays one snapshot, and so does what is read of it later.
    assert {scored.selected_step for scored in result.stages["joint"].tasks.values()} == {4}
    assert evaluate_run(out, stage="joint") == {
        task: each.splits for task, each in result.stages["joint"].tasks.items()
    }


@pytest.mark.parametrize(("choice", "name"), [("last", "last"), ("selected", "best")])
def test_all_tasks_start_from_the_last_or_the_selected_weights(
    choice: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, script = tmp_path / "run", Script(monkeypatch, {task: SCORES[task] for task in TASKS[:2]})
    run_tiny(out, *TUNED, f"finetune_from={choice}")
    joint = _joint(out)
    assert checkpoints_kept(joint) == ["best", "last"]
    assert not _equal(
        load_tensors(joint.checkpoints / "best", "model"), load_tensors(joint.checkpoints / "last", "model")
    )
    for task in TASKS[:2]:
        _assert_starts_from(script, task, joint.checkpoints / name)


def test_a_stop_forgets_no_task_s_best(tmp_path: Path) -> None:
    """Both tasks were better before the stop than ever after it."""
    scores = {ENTAIL: (9.0, 2.0, 8.0, 7.0), SIMILARITY: (math.nan, 5.0, math.nan, 4.0)}
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        Script(patch, scores)
        stop_after_update(patch, 4, signal.SIGTERM)
        expect_stop(out, *TASK_BEST, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        script = Script(patch, scores, first=2)
        run_tiny(out, *TASK_BEST, resume=True)
    for task, step in ((ENTAIL, 2), (SIMILARITY, 4)):
        assert step_of(_joint(out).best_for(task)) == step
        _assert_starts_from(script, task, _joint(out).best_for(task))


REAL = (*TASK_BEST, "training.updates=16", "checkpoint.every=5", "optimizer.learning_rate=2e-2")


@pytest.fixture(scope="module")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Scored in earnest; its tasks are best after different updates."""
    out = tmp_path_factory.mktemp("real") / "run"
    run_tiny(out, *REAL, tasks=TASKS)
    return RunDirectory(out)


def test_what_is_kept_is_the_best_that_was_logged(real_run: RunDirectory) -> None:
    joint = real_run.stage("joint")
    steps = {task: step_of(joint.best_for(task)) for task in TASKS}
    assert steps == _peaks(joint, TASKS)
    assert len(set(steps.values())) > 1


def test_a_stopped_run_keeps_what_an_uninterrupted_one_does(real_run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        # In the second evaluation, before its last split.
        stop_in_evaluation(patch, 5, signal.SIGTERM)
        expect_stop(out, *REAL, resume=False, tasks=TASKS)
    with pytest.MonkeyPatch.context() as patch:
        # Update 10 has a checkpoint; the evaluation after update 12 and what it saved have to be made again.
        die_in_update(patch, 12)
        with pytest.raises(KilledError):
            run_tiny(out, *REAL, resume=True, tasks=TASKS)
    unfinished = _joint(out).best_for(ENTAIL).with_name(".entail2.4000000.1.new")
    unfinished.mkdir()
    run_tiny(out, *REAL, resume=True, tasks=TASKS)
    assert not unfinished.exists()
    assert result_of(out) == result_of(real_run.path)
    assert_same_training(_joint(out), real_run.stage("joint"))
    for task in TASKS:
        assert_same_training(RunDirectory(out).stage("finetune", task), real_run.stage("finetune", task))


def test_a_task_the_joint_model_was_not_trained_on_starts_from_the_selected_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out, script = tmp_path / "run", Script(monkeypatch, {task: SCORES[task] for task in TASKS[:2]})
    run_tiny(out, *TASK_BEST)
    with caplog.at_level(logging.INFO, logger="mtl"):
        run_tiny(out, *TASK_BEST, tasks=TASKS, resume=True)
    best = load_tensors(_joint(out).checkpoints / "best", "model")
    assert _equal(script.started[f"finetune {ACCEPTABILITY}"]["model"], best)
    assert f"{ACCEPTABILITY}: the joint model was not trained on it" in caplog.text


def test_a_task_without_any_score_starts_from_the_selected_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(monkeypatch, {ENTAIL: SCORES[ENTAIL], SIMILARITY: (math.nan,) * 4})
    run_tiny(tmp_path / "run", *TASK_BEST)
    joint = _joint(tmp_path / "run")
    assert checkpoints_kept(joint) == ["best", f"best_for/{ENTAIL}", "last"]
    _assert_starts_from(script, SIMILARITY, joint.checkpoints / "best")
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any(message.startswith(f"{SIMILARITY}: none of its scores") for message in warnings)


def test_a_snapshot_that_is_gone_is_missed_only_while_it_is_needed(real_run: RunDirectory, tmp_path: Path) -> None:
    out = shutil.copytree(real_run.path, tmp_path / "run")
    shutil.rmtree(_joint(out).best_for(ENTAIL))
    assert run_tiny(out, *REAL, tasks=TASKS, resume=True).status == "complete"
    shutil.rmtree(RunDirectory(out).stage("finetune", ENTAIL).path)
    with pytest.raises(DataError, match=f"best_for/{ENTAIL}.* best for {ENTAIL}"):
        run_tiny(out, *REAL, tasks=TASKS, resume=True)


def test_another_choice_is_not_resumed(real_run: RunDirectory, tmp_path: Path) -> None:
    out = shutil.copytree(real_run.path, tmp_path / "run")
    with pytest.raises(ConfigError, match="finetune_from: task_best -> last"):
        run_tiny(out, *REAL, "finetune_from=last", tasks=TASKS, resume=True)


def test_another_run_starts_from_the_best_for_a_task(real_run: RunDirectory, tmp_path: Path) -> None:
    asked = (f"init.from={real_run.path}", "init.snapshot=best", f"init.task={SIMILARITY}")
    config = tiny_config(tmp_path / "run", "stages=[single]", *asked)
    initial = load_initial_weights(config, load_tokenizer(config.encoder))
    checkpoint = real_run.stage("joint").best_for(SIMILARITY)
    assert initial.heads == checkpoint
    assert _equal(initial.loaded.encoder.model.state_dict(), load_tensors(checkpoint, "model"))
    with pytest.raises(DataError, match=r"no weights at joint/checkpoints/best_for/mini/entail3; .*finetune_from"):
        run_tiny(tmp_path / "run", "stages=[single]", *asked, "init.task=mini/entail3")
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_model_and_a_task_that_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match=r"init\.snapshot=best"):
        load_config([], ["tasks=[mini]", "init.task=mini/entail2"])
