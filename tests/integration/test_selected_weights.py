"""Which weights count, what they are selected on, and what is trained on and looked at meanwhile."""

import math
import os
import signal
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import TASKS, expect_stop, records, run_tiny, stop_after_update, tiny_config

from mtl import tasks
from mtl.config.resolve import resolve_stage
from mtl.data.subsets import WHOLE, Portion
from mtl.data.tokenizer import load_tokenizer
from mtl.evaluation.evaluate import Evaluator
from mtl.records import StageRecord
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_document, load_tensors
from mtl.stages import train_one
from mtl.stages.datasets import TaskData, load_task_data
from mtl.stages.evaluate_run import evaluate_run
from mtl.stages.models import model_tensors
from mtl.stages.scoring import Snapshot
from mtl.training.update import Updater

NAMES = TASKS[:2]
JOINT_HOLDOUT = ("stages=[joint]", "selection.on=holdout", "evaluation.every=2")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TaskData]:
    config = tiny_config(tmp_path_factory.mktemp("data"), "data.max_train_rows=null")
    specs = [tasks.get(name) for name in NAMES]
    return load_task_data(config, specs, load_tokenizer(config.encoder), lambda: None)


def _settings(tmp_path: Path, on: str) -> Any:
    return resolve_stage(tiny_config(tmp_path, f"selection.on={on}"), "joint", None)


class Watcher:
    """Notes the rows a run trains on, and what it evaluates: the task, the rows of the split, and how many of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.trained: dict[str, list[int]] = {name: [] for name in NAMES}
        self.evaluated: list[tuple[str, int, int]] = []
        run, predict = Updater.run, Evaluator.predict

        def watched_run(updater: Updater, update: Any) -> Any:
            for batch in update.batches:
                for task, chosen in batch.layout.slices.items():
                    self.trained[task] += batch.example_ids[chosen].tolist()
            return run(updater, update)

        def watched_predict(evaluator: Evaluator, model: Any, spec: Any, store: Any, rows: Any = None) -> Any:
            self.evaluated.append((spec.name, store.rows, store.rows if rows is None else rows.size))
            return predict(evaluator, model, spec, store, rows)

        patch.setattr(Updater, "run", watched_run)
        patch.setattr(Evaluator, "predict", watched_predict)


def _scripted(patch: pytest.MonkeyPatch, scores: Iterable[float]) -> list[dict[str, np.ndarray]]:
    """Snapshots score as scripted; the weights at each of them."""
    script, seen = iter(scores), []

    def score_snapshot(model: Any, *_: Any, **__: Any) -> Snapshot:
        seen.append({name: value.numpy().copy() for name, value in model_tensors(model)["model"].items()})
        score = next(script)
        return Snapshot({"eval/mini/score": score}, score, {})

    patch.setattr(train_one, "score_snapshot", score_snapshot)
    return seen


def _joint(out: Path, *overrides: str, resume: bool = False) -> StageRecord:
    return run_tiny(out, *overrides, resume=resume).stages["joint"]


def test_rows_held_out_are_never_trained_on(
    data: dict[str, TaskData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(monkeypatch)
    # Three passes over the smaller task.
    overrides = ("data.max_train_rows=null", "training.updates=120", "evaluation.every=60", "sampling.kind=uniform")
    _joint(tmp_path / "run", *JOINT_HOLDOUT, *overrides)
    for name in NAMES:
        held = data[name].holdout()
        assert data[name].train.rows // 20 <= held.size <= data[name].train.rows // 10
        assert not set(watcher.trained[name]) & set(held.tolist())
    smaller = data[NAMES[0]]
    assert set(watcher.trained[NAMES[0]]) | set(smaller.holdout().tolist()) == set(range(smaller.train.rows))


def test_all_rows_are_trained_on_without_a_holdout(
    data: dict[str, TaskData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(monkeypatch)
    overrides = ("data.max_train_rows=null", "training.updates=null", "training.epochs=1", "sampling.kind=exact_epoch")
    record = _joint(tmp_path / "run", "stages=[joint]", *overrides, "training.rows_per_update=64")
    for name in NAMES:
        assert sorted(watcher.trained[name]) == list(range(data[name].train.rows))
    assert record.cost.examples == sum(data[name].train.rows for name in NAMES)
    assert record.cost.updates == math.ceil(record.cost.examples / 64)


def test_a_holdout_keeps_shared_texts_together_and_has_no_seed(data: dict[str, TaskData], tmp_path: Path) -> None:
    for task in data.values():
        held = task.holdout()
        chosen = task.stream(1, _settings(tmp_path, "holdout")).rows
        assert np.array_equal(chosen, task.stream(2, _settings(tmp_path, "holdout")).rows)
        keys = task.train.text_keys
        assert not set(keys[held].ravel().tolist()) & set(keys[chosen].ravel().tolist())
        assert task.stream(1, _settings(tmp_path, "last")).size == task.train.rows


def test_smaller_training_sets_are_parts_of_larger_ones(data: dict[str, TaskData], tmp_path: Path) -> None:
    for on in ("last", "holdout"):
        for task in data.values():
            limited = [
                TaskData(task.spec, task.train, task.dev, portion).stream(1, _settings(tmp_path, on)).rows.tolist()
                for portion in (Portion(5), Portion(20), Portion(90), WHOLE)
            ]
            assert [len(rows) for rows in limited[:3]] == [5, 20, 90]
            assert all(set(small) < set(large) for small, large in pairwise(limited))
            shares = [
                TaskData(task.spec, task.train, task.dev, Portion(fraction=share))
                .stream(1, _settings(tmp_path, on))
                .rows
                for share in (0.1, 0.5, 1.0)
            ]
            assert shares[2].tolist() == limited[3]
            assert [rows.size for rows in shares[:2]] == [round(share * len(limited[3])) for share in (0.1, 0.5)]
            assert all(set(small.tolist()) < set(large.tolist()) for small, large in pairwise(shares))


@pytest.mark.parametrize(("on", "looks"), [("last", 1), ("holdout", 4), ("dev", 4)])
def test_dev_is_looked_at_as_often_as_is_said(
    on: str, looks: int, data: dict[str, TaskData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(monkeypatch)
    every = "evaluation.every=null" if on == "last" else "evaluation.every=2"
    record = _joint(tmp_path / "run", "stages=[joint]", f"selection.on={on}", every)
    for name in NAMES:
        dev = (data[name].dev["dev"].rows, data[name].dev["dev"].rows)
        held = (data[name].train.rows, data[name].holdout().size)
        seen = [(rows, part) for task, rows, part in watcher.evaluated if task == name]
        assert seen == [*{"last": [], "holdout": [held] * 4, "dev": [dev] * 4}[on], dev]
        assert (record.tasks[name].selected_on, record.tasks[name].looks) == (on, looks)


@pytest.mark.parametrize("on", ["holdout", "dev"])
def test_the_best_weights_are_scored_not_the_last(on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _scripted(monkeypatch, [10.0, 30.0, 30.0, 20.0])
    record = _joint(tmp_path / "run", "stages=[joint]", f"selection.on={on}", "evaluation.every=2")
    assert {(task.selected_step, task.looks, task.selected_on) for task in record.tasks.values()} == {(4, 4, on)}
    checkpoints = RunDirectory(tmp_path / "run").stage("joint").checkpoints
    best, last = load_tensors(checkpoints / "best", "model"), load_tensors(checkpoints / "last", "model")
    for name, value in seen[1].items():
        assert np.array_equal(best[name].numpy(), value)
    assert any(not np.array_equal(last[name].numpy(), value) for name, value in seen[1].items())
    assert load_document(checkpoints / "best", "state") == {"step": 4}
    assert evaluate_run(tmp_path / "run") == {name: task.splits for name, task in record.tasks.items()}
    assert record.cost.updates == 8


def test_with_selection_on_last_scores_choose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _scripted(monkeypatch, [10.0, 30.0, 20.0])
    record = _joint(tmp_path / "run", "stages=[joint]", "evaluation.every=2")
    assert {(task.selected_step, task.looks, task.selected_on) for task in record.tasks.values()} == {(8, 1, "last")}
    assert not (RunDirectory(tmp_path / "run").stage("joint").checkpoints / "best").exists()


def test_patience_ends_a_training_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _scripted(monkeypatch, [10.0, 9.0, 9.5, 50.0])
    record = _joint(tmp_path / "run", *JOINT_HOLDOUT, "selection.patience=2")
    assert (record.cost.updates, record.cost.examples) == (6, 48)
    assert {(task.selected_step, task.looks) for task in record.tasks.values()} == {(2, 3)}
    log = records(RunDirectory(tmp_path / "run").stage("joint"))
    assert log[-2] == {"step": 6, "eval/mini/score": 9.5}
    assert log[-1]["step"] == 6
    assert log[-1]["eval_selected/mini/score"] == record.suites["mini"].score
    with np.load(RunDirectory(tmp_path / "run").stage("joint").sequence) as sequence:
        assert sequence["counts"].sum(axis=1).tolist() == [8] * 6


def test_a_stop_at_the_moment_patience_ends_does_not_train_on(tmp_path: Path) -> None:
    overrides = (*JOINT_HOLDOUT, "selection.patience=2")
    with pytest.MonkeyPatch.context() as patch:
        _scripted(patch, [10.0, 9.0, 9.5])
        original = Snapshot.__init__
        calls = iter(range(10))

        def signalled(self: Snapshot, *parts: Any) -> None:
            original(self, *parts)
            if next(calls) == 2:
                os.kill(os.getpid(), signal.SIGTERM)

        patch.setattr(Snapshot, "__init__", signalled)
        expect_stop(tmp_path / "run", *overrides, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        _scripted(patch, [])
        record = _joint(tmp_path / "run", *overrides, resume=True)
    assert record.cost.updates == 6
    assert {(task.selected_step, task.looks) for task in record.tasks.values()} == {(2, 3)}


def test_patience_survives_a_stop(tmp_path: Path) -> None:
    overrides = (*JOINT_HOLDOUT, "selection.patience=2")
    with pytest.MonkeyPatch.context() as patch:
        _scripted(patch, [10.0, 9.0])
        stop_after_update(patch, 4, signal.SIGTERM)
        expect_stop(tmp_path / "run", *overrides, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        _scripted(patch, [9.5])
        record = _joint(tmp_path / "run", *overrides, resume=True)
    assert record.cost.updates == 6
    assert {(task.selected_step, task.looks) for task in record.tasks.values()} == {(2, 3)}


def test_scores_on_a_part_are_logged_as_such(
    data: dict[str, TaskData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(monkeypatch)
    record = _joint(tmp_path / "run", "stages=[joint]", "evaluation.every=3", "evaluation.rows_during_training=50")
    log = records(RunDirectory(tmp_path / "run").stage("joint"))
    evaluated = [line for line in log if "eval_subset/mini/score" in line]
    assert [line["step"] for line in evaluated] == [3, 6]
    assert [line["step"] for line in log if any(key.startswith("eval/") for key in line)] == [8]
    whole = [data[name].dev["dev"].rows for name in NAMES]
    assert [part for _, _, part in watcher.evaluated] == [50] * 4 + whole
    assert [record.tasks[name].splits["dev"].rows for name in NAMES] == whole


def test_a_selection_without_a_rhythm_gets_one(tmp_path: Path) -> None:
    record = _joint(tmp_path / "run", "stages=[joint]", "selection.on=holdout", "training.updates=23")
    assert {task.looks for task in record.tasks.values()} == {8}
    steps = [
        line["step"]
        for line in records(RunDirectory(tmp_path / "run").stage("joint"))
        if "eval_holdout/mini/score" in line
    ]
    assert steps == [3, 6, 9, 12, 15, 18, 21, 23]


def test_each_single_task_selects_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _scripted(monkeypatch, [1.0, 2.0, 0.0, 0.0, 5.0, 2.0, 3.0, 4.0])
    result = run_tiny(tmp_path / "run", "stages=[single]", "selection.on=holdout", "evaluation.every=2")
    assert [task.selected_step for task in result.stages["single"].tasks.values()] == [4, 2]
    found = evaluate_run(tmp_path / "run", stage="single")
    assert found == {name: task.splits for name, task in result.stages["single"].tasks.items()}
