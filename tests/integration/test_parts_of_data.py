"""Dev splits scored in part, shares of the training rows, and labels shuffled as a control."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tiny_runs import ENTAIL, SIMILARITY, TASKS, result_of, run_tiny, tiny_config

from mtl import api
from mtl.data.tokenizer import load_tokenizer
from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.stages.datasets import TaskData, load_task_data
from mtl.tasks import get

JOINT = ("stages=[joint]", "training.updates=2")


def _data(tmp_path: Path, *overrides: str) -> dict[str, TaskData]:
    config = tiny_config(tmp_path / "run", "data.max_train_rows=null", *overrides, tasks=TASKS)
    return load_task_data(config, [get(name) for name in TASKS], load_tokenizer(config.encoder), lambda: None)


def test_dev_is_scored_in_part_and_marked_as_such(tmp_path: Path) -> None:
    parts: dict[int, set[int]] = {}
    for most in (20, 50):
        run = RunDirectory(tmp_path / str(most))
        limit = f"data.max_dev_rows={{{ENTAIL}: {most}}}"
        result = run_tiny(run.path, *JOINT, "evaluation.every=1", limit)
        scored = result.stages["joint"].tasks[ENTAIL].splits["dev"]
        assert (scored.rows, scored.rows_at_hand, scored.rows_official) == (most, 400, 400)
        whole = result_of(run.path)["stages"]["joint"]["tasks"][SIMILARITY]["splits"]["dev"]
        assert whole["rows"] == 400
        assert "rows_at_hand" not in whole
        rows = pq.read_table(run.stage("joint").predictions(ENTAIL, "dev"))["row_id"].to_pylist()
        assert rows == sorted(rows)
        parts[most] = set(rows)
        assert len(parts[most]) == most
        table = api.table(run.path)
        assert f"* {ENTAIL} dev: scored on a fixed part, {most} of 400 rows" in table
        assert f"{ENTAIL}*" in table
        evaluated = api.evaluate(run.path, tasks=[ENTAIL])[ENTAIL]["dev"]
        assert (evaluated.rows, evaluated.rows_at_hand) == (400, None)
    assert parts[20] < parts[50]
    paths = [tmp_path / "20", tmp_path / "50"]
    with pytest.raises(ConfigError, match=r"rows: .*on 20 and 50 rows of dev"):
        api.table(paths, baseline=result_of(paths[0])["arm_hash"][:12])


def test_a_dev_split_smaller_than_the_limit_is_scored_whole(tmp_path: Path) -> None:
    data = _data(tmp_path, "data.max_dev_rows=500", "data.fraction=1.0")
    assert not any(task.partial for task in data.values())
    cut = _data(tmp_path, "data.max_dev_rows=399")
    assert all(task.partial for task in cut.values())


def test_a_share_of_the_rows_is_trained_on_and_counted(tmp_path: Path) -> None:
    overrides = ("data.max_train_rows=null", f"data.fraction={{{ENTAIL}: 0.1}}", "training.epochs=1")
    rows = get(ENTAIL).splits["train"].official_rows
    assert rows is not None
    planned = api.plan(tiny_config(tmp_path / "plan", "stages=[single]", *overrides, "training.updates=null"))
    share, whole = (model.tasks[0].rows for model in planned.stages[0].models)
    assert (share, whole) == (round(0.1 * rows), get(SIMILARITY).splits["train"].official_rows)
    tasks = run_tiny(tmp_path / "run", *JOINT, *overrides[:2]).stages["joint"].tasks
    assert tasks[ENTAIL].train_rows == round(0.1 * rows)
    assert tasks[ENTAIL].train_rows_official == rows
    assert tasks[SIMILARITY].train_rows == whole
    assert f"* {ENTAIL} train:" in api.table(tmp_path / "run")


@pytest.mark.parametrize("task", TASKS)
def test_shuffled_labels_are_the_same_labels_in_another_order(task: str, tmp_path: Path) -> None:
    plain = _data(tmp_path)[task]
    orders = []
    for seed in (1, 2):
        shuffled = _data(tmp_path, f"data.shuffled_labels=[{task}]", f"seed={seed}", "data.fraction=0.5")
        found = shuffled[task]
        assert np.array_equal(np.sort(found.train.labels), np.sort(plain.train.labels))
        assert found.train.labels.dtype == plain.train.labels.dtype
        assert np.array_equal(found.train.tokens, plain.train.tokens)
        assert np.array_equal(found.dev["dev"].labels, plain.dev["dev"].labels)
        for other in set(TASKS) - {task}:
            assert np.array_equal(shuffled[other].train.labels, _data(tmp_path)[other].train.labels)
        orders.append(np.asarray(found.train.labels))
    again = _data(tmp_path, f"data.shuffled_labels=[{task}]")[task].train.labels
    assert np.array_equal(orders[0], again), "a smaller part of the rows has the labels it has in all of them"
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], plain.train.labels)


def test_runs_on_shuffled_labels_say_so_and_are_other_runs(tmp_path: Path) -> None:
    plain = run_tiny(tmp_path / "plain", *JOINT)
    control = run_tiny(tmp_path / "control", *JOINT, f"data.shuffled_labels=[{SIMILARITY}]")
    assert plain.arm_hash != control.arm_hash
    marked = result_of(tmp_path / "control")["stages"]["joint"]["tasks"]
    assert marked[SIMILARITY]["labels_shuffled"] is True
    assert "labels_shuffled" not in marked[ENTAIL]
    assert "labels_shuffled" not in str(result_of(tmp_path / "plain"))
    told = f"TRAINED ON SHUFFLED LABELS of {SIMILARITY}"
    assert told in api.table(tmp_path / "control")
    assert told not in api.table(tmp_path / "plain")
    assert told in api.table(tmp_path, baseline=plain.arm_hash[:12])


def test_labels_in_files_are_shuffled_too(tmp_path: Path) -> None:
    rows = "".join(f"text {row},{row / 2}\n" for row in range(10))
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("text,score\n" + rows)
    (tmp_path / "task.yaml").write_text(
        "name: mine/score\nfiles: {train: train.csv, dev: dev.csv}\ntexts: [text]\nlabel: score\nscore_range: [0, 5]\n"
    )
    overrides = ("data.shuffled_labels=[mine/score]", "data.max_dev_rows=4", "data.max_train_rows=null")
    result = run_tiny(tmp_path / "run", *JOINT, *overrides, tasks=(str(tmp_path / "task.yaml"), ENTAIL))
    record = result.stages["joint"].tasks["mine/score"]
    assert record.labels_shuffled
    assert (record.splits["dev"].rows, record.splits["dev"].rows_at_hand) == (4, 10)
    assert result.partial
    assert "* mine/score dev: scored on a fixed part, 4 of 10 rows" in api.table(tmp_path / "run")
