"""Finished runs used again: predictions of any split, and tasks that plain transformers opens."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from huggingface_hub import ModelCard
from tiny_runs import ACCEPTABILITY, ENTAIL, SIMILARITY, TASKS, run_tiny
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from mtl.config.run import Stage
from mtl.data.sources import read_rows
from mtl.errors import ConfigError, DataError
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.stages import export
from mtl.stages.export import export_task
from mtl.stages.predict_run import predict_run
from mtl.stages.submit_run import submit_run
from mtl.tasks import registry
from mtl.tasks.registry import get

STAGES: tuple[Stage, ...] = ("joint", "single", "finetune")


def plain_logits(directory: Path, columns: list[list[str]]) -> np.ndarray:
    """What transformers alone makes of texts, row by row, so that nothing is padded."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    with torch.inference_mode():
        rows = [
            model(**tokenizer(*texts, truncation=True, return_tensors="pt")).logits[0]
            for texts in zip(*columns, strict=True)
        ]
    return torch.stack(rows).numpy()


def contents(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


@pytest.mark.parametrize("stage", STAGES)
def test_predictions_are_those_the_run_wrote(full_run: RunDirectory, tmp_path: Path, stage: Stage) -> None:
    files = predict_run(full_run.path, stage=stage, split="dev", out=tmp_path)
    assert set(files) == set(TASKS)
    for task, splits in files.items():
        assert splits == {"dev": tmp_path / task / "dev.parquet"}
        own = full_run.stage(stage, None if stage == "joint" else task).predictions(task, "dev")
        assert splits["dev"].read_bytes() == own.read_bytes()


def test_a_split_that_was_trained_on_is_predicted_into_the_run_itself(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_tiny(out, "stages=[joint]", "training.updates=1")
    files = predict_run(out, tasks=[ENTAIL], split="train")
    place = RunDirectory(out).stage("joint").predictions(ENTAIL, "train")
    assert files == {ENTAIL: {"train": place}}
    table = pq.read_table(place)
    rows = read_rows(get(ENTAIL), "train", None)
    assert table["row_id"].to_pylist() == list(range(len(rows)))
    labels = [get(ENTAIL).labels[label] for label in rows.labels.tolist()]
    assert table["label"].to_pylist() == labels


def test_a_task_or_split_that_the_run_lacks_is_named(joint_run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not trained on mini/acceptability; it was on mini/entail2"):
        predict_run(joint_run.path, tasks=[ACCEPTABILITY], split="dev", out=tmp_path)
    with pytest.raises(ConfigError, match="mini/entail2 has no split 'tset'; it has train, dev"):
        predict_run(joint_run.path, split="tset", out=tmp_path)
    with pytest.raises(ConfigError, match=r"not trained on glue/mnli"):
        predict_run(joint_run.path, tasks=["glue/ax"], out=tmp_path)
    assert contents(tmp_path) == []


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("task", TASKS)
def test_an_exported_task_gives_the_logits_of_the_run(
    full_run: RunDirectory, tmp_path: Path, stage: Stage, task: str
) -> None:
    directory = export_task(full_run.path, tmp_path / "export", task=task, stage=stage)
    table = pq.read_table(full_run.stage(stage, None if stage == "joint" else task).predictions(task, "dev"))
    columns = [list(column[:60]) for column in read_rows(get(task), "dev", None).texts]
    found = plain_logits(directory, columns)
    np.testing.assert_allclose(found, np.array(table["logits"].to_pylist()[:60]), rtol=0, atol=1e-5)
    config: Any = AutoModelForSequenceClassification.from_pretrained(directory).config
    if get(task).kind == "classification":
        named = [config.id2label[int(place)] for place in found.argmax(axis=1)]
        assert named == table["prediction"].to_pylist()[:60]
    assert contents(tmp_path) == [directory], "nothing is left beside it"


def test_the_model_card_tells_where_the_model_is_from(full_run: RunDirectory, tmp_path: Path) -> None:
    directory = export_task(full_run.path, tmp_path / "export", task=SIMILARITY, stage="finetune")
    card = ModelCard.load(directory / "README.md")
    assert card.data.library_name == "transformers"
    assert card.data.pipeline_tag == "text-classification"
    text = card.text
    record = read_result(full_run.result).stages["finetune"].tasks[SIMILARITY]
    for metric, value in record.splits["dev"].metrics.items():
        assert f"| {metric} | {value:.2f} |" in text
    assert f"jointly on {', '.join(TASKS)}, then on this task alone" in text
    assert "3 updates" in text
    assert "seed 3" in text
    assert "Trained on 60 of the" in text, "partial data are marked"
    assert str(tmp_path) not in text


def test_a_directory_with_content_is_left_alone_and_an_empty_one_is_used(
    joint_run: RunDirectory, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is there already, with content"):
        export_task(joint_run.path, tmp_path, task=ENTAIL)
    with pytest.raises(ConfigError, match="is there already, with content"):
        export_task(joint_run.path, tmp_path / "mine.txt", task=ENTAIL)
    assert [path.name for path in contents(tmp_path)] == ["mine.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert (export_task(joint_run.path, empty, task=ENTAIL) / "model.safetensors").is_file()


def test_a_model_that_comes_out_otherwise_is_not_exported(
    joint_run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = export.classifier

    def wrong(*arguments: Any) -> Any:
        model = original(*arguments)
        with torch.no_grad():
            model.classifier.bias.add_(torch.tensor([0.0, 0.01]))
        return model

    monkeypatch.setattr(export, "classifier", wrong)
    with pytest.raises(DataError, match=r"nothing was exported: .* differ by 0\.0"):
        export_task(joint_run.path, tmp_path / "export", task=ENTAIL)
    assert contents(tmp_path) == []


def test_what_has_no_head_or_none_that_fits_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_tiny(out, "stages=[joint]", "training.updates=1", "head.pooling=mean")
    with pytest.raises(ConfigError, match=r"head\.pooling=first_dense"):
        export_task(out, tmp_path / "export", task=ENTAIL)
    with pytest.raises(ConfigError, match=r"export glue/mnli, whose head reads it"):
        export_task(out, tmp_path / "export", task="glue/ax")
    with pytest.raises(ConfigError, match=r"not trained on mini/acceptability"):
        export_task(out, tmp_path / "export", task=ACCEPTABILITY)
    assert contents(tmp_path) == [out]


def test_another_precision_than_the_runs_is_written_elsewhere(joint_run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="do not belong into it"):
        predict_run(joint_run.path, split="dev", precision="bf16")
    own = pq.read_table(joint_run.stage("joint").predictions(ENTAIL, "dev"))
    files = predict_run(joint_run.path, tasks=[ENTAIL], split="dev", precision="bf16", out=tmp_path)
    rounded = pq.read_table(files[ENTAIL]["dev"])
    assert rounded["label"] == own["label"]
    difference = np.array(rounded["logits"].to_pylist()) - np.array(own["logits"].to_pylist())
    assert 1e-6 < np.abs(difference).max() < 0.1


def test_places_that_cannot_be_written_to_are_said_before_anything_is_run(
    joint_run: RunDirectory, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="is a file"):
        predict_run(joint_run.path, split="dev", out=file)
    with pytest.raises(ConfigError, match="is a directory: name the zip"):
        submit_run(joint_run.path, tmp_path, fill_missing=True)


def test_a_run_without_any_task_of_the_benchmark_is_refused_even_with_leave_to_fill(
    joint_run: RunDirectory, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="11 of 11 files cannot be predicted") as caught:
        submit_run(joint_run.path, tmp_path / "glue.zip", fill_missing=True)
    assert "--fill-missing" not in str(caught.value)
    assert contents(tmp_path) == []


def test_tasks_without_the_split_are_left_out_and_told_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    run_tiny(out, "stages=[joint]", "training.updates=1")
    spec = get(SIMILARITY)
    shorter = spec.model_copy(update={"splits": {name: spec.splits[name] for name in ("train", "dev")}})
    monkeypatch.setitem(registry._TASKS, SIMILARITY, shorter)
    assert "test" in get(ENTAIL).splits
    assert list(predict_run(out, out=tmp_path / "predictions")) == [ENTAIL]
    assert "no predictions for mini/similarity" in caplog.text
    with pytest.raises(ConfigError, match=r"mini/similarity has no split 'test'"):
        predict_run(out, tasks=[SIMILARITY], out=tmp_path / "predictions")
