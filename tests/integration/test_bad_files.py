"""Files that are missing or wrong, of data, tasks and models, are one clear message, and nothing is left behind."""

from pathlib import Path

import pytest
from refused_runs import LONG, Case, Prepare, assert_refused

from mtl.config.encoder import ScratchEncoder
from mtl.data.tokenizer import load_tokenizer

HEADER = "index\tsentence1\tsentence2\tlabel"
ROWS = ("0\tIt rains.\tIt is wet.\tentailment", "1\tIt rains.\tIt is dry.\tnot_entailment")
CSV = "review,rating\nGood.,positive\nBad.,negative\n"
TASK = "name: mine/reviews\nfiles: {train: train.csv, dev: dev.csv}\ntexts: [review]\nlabel: rating\n"
TASK += "labels: [negative, positive]\n"


def rte(*, train: str | bytes = "\n".join((HEADER, *ROWS)), dev: str | bytes = "\n".join((HEADER, *ROWS))) -> Prepare:
    """Files of the task glue/rte under the working directory."""

    def write(directory: Path) -> None:
        folder = directory / "glue" / "RTE"
        folder.mkdir(parents=True)
        for name, content in (("train", train), ("dev", dev)):
            (folder / f"{name}.tsv").write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def user_task(definition: str = TASK, *, train: str = CSV, dev: str = CSV) -> Prepare:
    """A task file x.yaml with its two files."""

    def write(directory: Path) -> None:
        (directory / "x.yaml").write_text(definition, encoding="utf-8")
        (directory / "train.csv").write_text(train, encoding="utf-8")
        (directory / "dev.csv").write_text(dev, encoding="utf-8")

    return write


def model_without_weights(directory: Path) -> None:
    (directory / "model").mkdir()
    (directory / "model" / "config.json").write_text('{"model_type": "bert", "vocab_size": 70}', encoding="utf-8")
    load_tokenizer(ScratchEncoder(tokenizer="mini")).hugging_face.save_pretrained(directory / "model")


GLUE = ("tasks=[glue/rte]", "data.root=.")
USER = ("tasks=[./x.yaml]",)

CASES = {
    # Data.
    "missing data": Case(3, ("glue/rte, split train", "train.tsv", "data.root", "nyu-mll/glue"), GLUE),
    "no data root": Case(3, ("no data root is set", "train.tsv", "MTL_DATA_DIR"), ("tasks=[glue/rte]",)),
    "missing data root": Case(3, ("nowhere", "glue/RTE/train.tsv"), ("tasks=[glue/rte]", "data.root=nowhere")),
    "missing split": Case(
        3, ("glue/rte, split dev", "dev.tsv"), GLUE, lambda d: (rte()(d), (d / "glue/RTE/dev.tsv").unlink())[1]
    ),
    "wrong column": Case(
        3,
        ("train.tsv", "'sentence2' is absent", "header"),
        GLUE,
        rte(train="\n".join((HEADER.replace("sentence2", "second"), *ROWS))),
    ),
    "short row": Case(
        3, ("train.tsv, line 3", "3 columns", "mend"), GLUE, rte(train=f"{HEADER}\n{ROWS[0]}\n1\ta\tb\n")
    ),
    "label outside the set": Case(
        3,
        ("dev.tsv, line 3", "'neutral'", "'entailment'"),
        GLUE,
        rte(dev=f"{HEADER}\n{ROWS[0]}\n1\ta\tb\tneutral\n"),
    ),
    "-1 in a training split": Case(
        3, ("train.tsv, line 2", "'-1'", "unlabelled"), GLUE, rte(train=f"{HEADER}\n0\ta\tb\t-1\n{ROWS[1]}\n")
    ),
    "empty split": Case(3, ("glue/rte train", "no rows", "replace its file"), GLUE, rte(train=HEADER)),
    "empty file": Case(3, ("dev.tsv", "empty", "sentence1"), GLUE, rte(dev="")),
    "data that are not text": Case(3, ("train.tsv, line 1", "UTF-8"), GLUE, rte(train=b"index\xff\tsentence1\n")),
    # A user's own files.
    "CSV with a wrong column": Case(
        3, ("train.csv", "'review' is absent"), USER, user_task(train="text,rating\nGood.,positive\n")
    ),
    "CSV with a short row": Case(
        3, ("train.csv, line 3", "1 columns", "mend"), USER, user_task(train=CSV.replace("Bad.,negative", "Bad."))
    ),
    "CSV with a label outside the set": Case(
        3, ("train.csv, line 3", "'awful'", "'negative'"), USER, user_task(train=CSV.replace("negative", "awful"))
    ),
    "CSV with -1 in train": Case(
        3, ("train.csv, line 3", "'-1'", "unlabelled"), USER, user_task(train=CSV.replace("negative", "-1"))
    ),
    "CSV without rows": Case(3, ("mine/reviews dev", "no rows"), USER, user_task(dev="review,rating\n")),
    "CSV that is missing": Case(
        3, ("mine/reviews, split dev", "other.csv"), USER, user_task(TASK.replace("dev.csv", "other.csv"))
    ),
    "task file that is missing": Case(2, ("x.yaml",), USER),
    "task file with an unknown key": Case(
        2, ("x.yaml", "labls", "labels"), USER, user_task(TASK.replace("labels", "labls"))
    ),
    "task file that shadows a shipped task": Case(
        2, ("x.yaml", "glue/rte"), USER, user_task(TASK.replace("mine/reviews", "glue/rte"))
    ),
    "task name that leads out": Case(2, ("x.yaml", "name"), USER, user_task(TASK.replace("mine/reviews", "../x"))),
    "task name that leads out in its second part": Case(
        2, ("x.yaml", "name"), USER, user_task(TASK.replace("mine/reviews", "mine/.."))
    ),
    "task name with NUL": Case(2, ("x.yaml",), USER, user_task(TASK.replace("mine/reviews", '"mine/a\\0b"'))),
    "task name without end": Case(2, ("x.yaml", "name"), USER, user_task(TASK.replace("reviews", LONG))),
    # Models.
    "model without weights": Case(
        3, ("model", "model.safetensors"), ("encoder={kind: pretrained, path: ./model}",), model_without_weights
    ),
    "model that is missing": Case(3, ("./nowhere", "config.json"), ("encoder={kind: pretrained, path: ./nowhere}",)),
    "hub model without a network": Case(
        3, ("nobody/nothing", "without a network"), ("encoder={kind: pretrained, path: nobody/nothing}",)
    ),
    "package that is missing": Case(
        3, ("no_such_package", "pip install"), ("encoder={kind: pretrained, path: 'package:no_such_package'}",)
    ),
    "model name with NUL": Case(2, ("encoder.path", "NUL"), ('encoder={kind: pretrained, path: "a\\0b"}',)),
    "model name without end": Case(2, ("encoder.path", "shorten"), (f"encoder={{kind: pretrained, path: {LONG}}}",)),
    "GPU that is not there": Case(2, ("training.device", "cuda:99", "cpu"), ("training.device=cuda:99",)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_on_such_files_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(CASES[name], tmp_path, monkeypatch, capsys)
