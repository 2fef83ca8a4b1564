"""The files of a run say the same thing, and what the contract says they say."""

import json
import re
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny_runs import (
    ENTAIL,
    JOINT,
    SIMILARITY,
    TASKS,
    KilledError,
    die_in_update,
    records,
    run_tiny,
    stop_after_update,
    tiny_config,
)

from mtl import metrics, tasks
from mtl.config.load import load_config
from mtl.data.sources import read_rows
from mtl.errors import DataError, StoppedError
from mtl.records import ResultRecord, StageRecord, read_result
from mtl.rundir import RunDirectory
from mtl.stages.evaluate_run import evaluate_run

STAGES = ("single", "joint", "finetune")


@pytest.fixture(scope="module")
def result(full_run: RunDirectory) -> ResultRecord:
    return read_result(full_run.result)


def test_every_file_of_the_layout_is_there(full_run: RunDirectory) -> None:
    assert sorted(path.name for path in full_run.path.iterdir()) == sorted(
        ["config.yaml", "environment.json", "result.json", *STAGES]
    )
    for directory in (full_run.stage("joint"), full_run.stage("finetune", ENTAIL)):
        names = {path.name for path in directory.path.iterdir()}
        assert names == {"metrics.jsonl", "sequence.npz", "checkpoints", "predictions", "stage.json"}
        assert {path.name for path in (directory.checkpoints / "last").iterdir()} >= {
            "manifest.json",
            "config.json",
            "model.safetensors",
            "heads.safetensors",
            "tokenizer.json",
            "state.json",
        }


def test_the_result_is_complete_and_means_what_it_says(result: ResultRecord) -> None:
    assert (result.status, result.seed, result.partial) == ("complete", 3, True)
    assert re.fullmatch("[0-9a-f]{64}", result.arm_hash)
    assert re.fullmatch("[0-9a-f]{64}", result.run_hash)
    assert tuple(result.stages) == STAGES
    for stage in result.stages.values():
        assert tuple(stage.tasks) == TASKS
        for name, task in stage.tasks.items():
            spec = tasks.get(name)
            assert (task.selected_on, task.looks) == ("last", 1)
            assert tuple(task.splits) == spec.dev_splits
            values = [task.splits[split].metrics[metric] for split in spec.dev_splits for metric in spec.primary]
            assert task.primary == pytest.approx(sum(values) / len(values), abs=1e-12)
            assert all(
                part.rows == part.rows_official == spec.splits[split].official_rows
                for split, part in task.splits.items()
            )
        suite = stage.suites["mini"]
        assert tuple(suite.tasks) == TASKS
        assert suite.score == pytest.approx(sum(task.primary for task in stage.tasks.values()) / 3, abs=1e-12)
    assert {task.selected_step for task in result.stages["joint"].tasks.values()} == {8}
    assert {task.selected_step for task in result.stages["finetune"].tasks.values()} == {3}


def test_rows_left_out_make_a_run_partial_and_nothing_else_does(tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("partial")
    assert not run_tiny(out / "all", "stages=[single]", "data.max_train_rows=null", "training.updates=1").partial
    limits = "data.max_train_rows={mini/entail2: 5000}"
    assert not run_tiny(out / "enough", "stages=[single]", limits, "training.updates=1").partial


def _directories() -> list[tuple[str, tuple[str, ...]]]:
    return [("joint", TASKS), *((stage, (task,)) for stage in ("single", "finetune") for task in TASKS)]


def test_predictions_are_the_dev_rows_in_order_and_give_the_scores(
    full_run: RunDirectory, result: ResultRecord
) -> None:
    for stage, names in _directories():
        directory = full_run.stage(stage, None if stage == "joint" else names[0])
        for name in names:
            spec = tasks.get(name)
            table = pq.read_table(directory.predictions(name, "dev"))
            assert table.column_names == ["row_id", "label", "prediction", "logits"]
            assert [str(kind) for kind in table.schema.types][::3] == ["int64", "list<element: float>"]
            columns = table.to_pydict()
            labels = read_rows(spec, "dev", None).labels
            assert columns["row_id"] == list(range(len(labels)))
            logits = np.array(columns["logits"], dtype=np.float32)
            assert logits.shape == (len(labels), spec.outputs)
            if spec.kind == "regression":
                assert columns["label"] == labels.tolist()
                assert columns["prediction"] == logits[:, 0].tolist()
                predicted = np.array(columns["prediction"], dtype=np.float32)
            else:
                assert columns["label"] == [spec.labels[label] for label in labels]
                assert columns["prediction"] == [spec.labels[best] for best in logits.argmax(axis=1)]
                predicted = np.array([spec.labels.index(label) for label in columns["prediction"]])
            again = metrics.score(spec, predicted, labels)
            record = result.stages[stage].tasks[name].splits["dev"]  # type: ignore[index]
            assert (again.metrics, again.flags) == (record.metrics, record.flags)


def test_the_task_sequence_adds_up_to_the_cost(full_run: RunDirectory, result: ResultRecord) -> None:
    with np.load(full_run.stage("joint").sequence) as sequence:
        names, counts, cursors = (sequence[key] for key in ("task_names", "counts", "cursors"))
    cost = result.stages["joint"].cost
    assert tuple(names) == TASKS
    assert counts.shape == (cost.updates, 3)
    assert counts.sum(axis=0).tolist() == cursors.tolist()
    assert cursors.sum() == cost.examples
    assert counts.sum(axis=1).tolist() == [8] * 8


KEYS = (
    r"train/mini/\w+/(loss|probability|weight|epochs)|train/learning_rate|gradient/norm"
    r"|speed/(rows|tokens)_per_second|eval/mini/\w+/(accuracy|pearson|spearman|primary)|eval/mini/score|step"
)


def test_the_log_holds_the_records_of_the_contract(joint_run: RunDirectory) -> None:
    lines = [json.loads(line) for line in joint_run.stage("joint").metrics.read_text().splitlines()]
    assert all(re.fullmatch(KEYS, key) for line in lines for key in line)
    training = [line for line in lines if "train/learning_rate" in line]
    assert [line["step"] for line in training] == list(range(1, 9))
    evaluated = [line for line in lines if "eval/mini/score" in line]
    assert [line["step"] for line in evaluated] == [3, 6, 8]
    assert lines[-1] is evaluated[-1], "the scores of the result close the log"
    for line in training:
        assert sum(line[f"train/{task}/probability"] for task in TASKS[:2]) == pytest.approx(1.0)
        assert line["speed/rows_per_second"] > 0
    with np.load(joint_run.stage("joint").sequence) as sequence:
        epochs = [training[-1][f"train/{task}/epochs"] for task in TASKS[:2]]
        assert epochs == pytest.approx((sequence["cursors"] / 60).tolist())
    primary = [evaluated[0][f"eval/{task}/primary"] for task in TASKS[:2]]
    assert evaluated[0]["eval/mini/score"] == pytest.approx(sum(primary) / 2)


def test_evaluating_a_run_again_gives_its_scores(full_run: RunDirectory, result: ResultRecord) -> None:
    for stage in STAGES:
        found = evaluate_run(full_run.path, stage=stage)  # type: ignore[arg-type]
        record: StageRecord = result.stages[stage]  # type: ignore[index]
        assert found == {name: task.splits for name, task in record.tasks.items()}
    assert list(evaluate_run(full_run.path, tasks=[SIMILARITY])) == [SIMILARITY]


def test_evaluation_of_what_is_not_there_is_refused(joint_run: RunDirectory) -> None:
    with pytest.raises(DataError, match="has not finished"):
        evaluate_run(joint_run.path, stage="single")
    with pytest.raises(DataError, match="no labels"):
        evaluate_run(joint_run.path, split="test")


def test_evaluation_in_bf16_is_that_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("bf16") / "run"
    result = run_tiny(out, "stages=[joint]", "training.precision=bf16", "selection.on=holdout", "evaluation.every=3")
    assert evaluate_run(out) == {name: task.splits for name, task in result.stages["joint"].tasks.items()}


def test_the_log_does_not_depend_on_how_often_checkpoints_are_made(
    joint_run: RunDirectory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("once") / "run"
    run_tiny(out, "stages=[joint]", "evaluation.every=3", "checkpoint.every=null")
    assert records(RunDirectory(out).stage("joint")) == records(joint_run.stage("joint"))
    assert [path.name for path in RunDirectory(out).stage("joint").checkpoints.iterdir()] == ["last"]


def test_tensorboard_shows_the_same_numbers_also_after_a_stop(
    joint_run: RunDirectory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path_factory.mktemp("tensorboard") / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_after_update(patch, 3, signal.SIGTERM)
        with pytest.raises(StoppedError):
            run_tiny(out, *JOINT, "logging.tensorboard=true")
    with pytest.MonkeyPatch.context() as patch:
        # The events of update 5 come after the last checkpoint, and will come again.
        die_in_update(patch, 5)
        with pytest.raises(KilledError):
            run_tiny(out, *JOINT, "logging.tensorboard=true", resume=True)
    run_tiny(out, *JOINT, "logging.tensorboard=true", resume=True)
    # A finished run that is resumed hides nothing of it.
    run_tiny(out, *JOINT, "logging.tensorboard=true", resume=True)
    directory = RunDirectory(out).stage("joint")
    events = EventAccumulator(str(directory.tensorboard), size_guidance={"scalars": 0}).Reload()
    logged: dict[str, list[tuple[int, float]]] = {}
    for line in directory.metrics.read_text().splitlines():
        record = json.loads(line)
        for name in record.keys() - {"step"}:
            logged.setdefault(name, []).append((record["step"], float(np.float32(record[name]))))
    shown = {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
        if not name.startswith("final/")
    }
    assert shown == logged
    assert {name for name in events.Tags()["scalars"] if name.startswith("final/")} == {
        f"final/{task}/primary" for task in TASKS[:2]
    }
    assert records(directory) == records(joint_run.stage("joint"))
    assert [path.name for path in out.iterdir() if path.is_dir()] == ["joint"]


def test_saved_encoders_open_in_transformers(full_run: RunDirectory) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    directory = full_run.stage("joint").checkpoints / "last"
    model, report = AutoModel.from_pretrained(directory, add_pooling_layer=False, output_loading_info=True)
    assert not report["missing_keys"]
    saved = load_file(directory / "model.safetensors")
    assert all(torch.equal(tensor, saved[name]) for name, tensor in model.state_dict().items())
    assert len(AutoTokenizer.from_pretrained(directory)) == model.config.vocab_size


def test_the_config_written_is_the_one_that_was_run(full_run: RunDirectory) -> None:
    assert load_config(full_run.config) == tiny_config(full_run.path, "seed=3", tasks=TASKS)
