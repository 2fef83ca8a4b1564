"""Whatever a user gets wrong is one clear message with its exit code: no traceback, and nothing left behind."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_runs import JOINT, settings

from mtl.cli import main
from mtl.config.encoder import ScratchEncoder
from mtl.data.tokenizer import load_tokenizer
from mtl.rundir import RunDirectory
from mtl.tasks import registry

HEADER = "index\tsentence1\tsentence2\tlabel"
ROWS = ("0\tIt rains.\tIt is wet.\tentailment", "1\tIt rains.\tIt is dry.\tnot_entailment")
CSV = "review,rating\nGood.,positive\nBad.,negative\n"
TASK = "name: mine/reviews\nfiles: {train: train.csv, dev: dev.csv}\ntexts: [review]\nlabel: rating\n"
TASK += "labels: [negative, positive]\n"

Prepare = Callable[[Path], None]


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


def a_file(name: str, content: str | bytes) -> Prepare:
    def write(directory: Path) -> None:
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def model_without_weights(directory: Path) -> None:
    (directory / "model").mkdir()
    (directory / "model" / "config.json").write_text('{"model_type": "bert", "vocab_size": 70}', encoding="utf-8")
    load_tokenizer(ScratchEncoder(tokenizer="mini")).hugging_face.save_pretrained(directory / "model")


def nothing(directory: Path) -> None:
    del directory


@dataclass(frozen=True)
class Case:
    """What is typed after ``mtl run`` (on top of a tiny run), what lies there, and what has to be said."""

    code: int
    told: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    prepare: Prepare = nothing


GLUE = ("tasks=[glue/rte]", "data.root=.")
USER = ("tasks=[./x.yaml]",)
LONG = "x" * 5000

CASES = {
    # Configs.
    "unknown key": Case(2, ("trainng", "did you mean training?"), ("trainng.updates=3",)),
    "unknown key inside a group": Case(
        2, ("joint.training.update", "did you mean joint.training.updates?"), ("joint.training.update=3",)
    ),
    "number that is text": Case(2, ("training.updates", "integer", "many"), ("training.updates=many",)),
    "negative number": Case(2, ("seed", "greater than or equal to 0", "-1"), ("seed=-1",)),
    "not a number": Case(2, ("optimizer.learning_rate", "finite"), ("optimizer.learning_rate=nan",)),
    "unknown kind": Case(2, ("sampling", "temprature", "temperature"), ("sampling=temprature",)),
    "unknown stage": Case(2, ("stages", "both", "'joint'"), ("stages=[both]",)),
    "text for a list": Case(2, ("tasks", "write [glue]"), ("tasks=glue",)),
    "unknown task": Case(2, ("'glue/ret'", "did you mean glue/rte"), ("tasks=[glue/ret]",)),
    "no task": Case(2, ("tasks",), ("tasks=[]",)),
    "YAML that is a list": Case(2, ("list.yaml", "line 1", "mapping"), ("list.yaml",), a_file("list.yaml", "- a\n")),
    "YAML that is text": Case(2, ("text.yaml", "line 1", "mapping"), ("text.yaml",), a_file("text.yaml", "hello\n")),
    "broken YAML": Case(2, ("broken.yaml", "line 3"), ("broken.yaml",), a_file("broken.yaml", "a: 1\nb: [1\n")),
    "YAML that names a type": Case(
        2, ("tagged.yaml", "line 1", "python/none"), ("tagged.yaml",), a_file("tagged.yaml", "a: !!python/none x\n")
    ),
    "YAML that is not text": Case(2, ("binary.yaml", "UTF-8"), ("binary.yaml",), a_file("binary.yaml", b"\xff\xfe")),
    "missing config": Case(2, ("nowhere.yaml", "Check the path"), ("nowhere.yaml",)),
    "unknown recipe": Case(2, ("qickstart", "Did you mean quickstart?"), ("qickstart",)),
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
    # Hostile names elsewhere.
    "task that leads out": Case(2, ("'../x'",), ("tasks=[../x]",)),
    "task with NUL": Case(2, ("unknown task",), ('tasks=["glue/a\\0b"]',)),
    "task without end": Case(2, ("unknown task",), (f"tasks=[glue/{LONG}]",)),
    "out with NUL": Case(2, ("out",), ('out="a\\0b"',)),
    "out without end": Case(2, ("out",), (f"out={LONG}",)),
    "out below a file": Case(2, ("note.txt", "out="), ("out=note.txt/run",), a_file("note.txt", "text")),
    "out that is a file": Case(2, ("note.txt", "file", "out="), ("out=note.txt",), a_file("note.txt", "text")),
    "data root with NUL": Case(2, ("data.root", "NUL"), ("tasks=[glue/rte]", 'data.root="a\\0b"')),
    "data root without end": Case(2, ("data.root", "shorten"), ("tasks=[glue/rte]", f"data.root={LONG}")),
    "data root that is a file": Case(
        3,
        ("note.txt/glue/RTE", "Not a directory"),
        ("tasks=[glue/rte]", "data.root=note.txt"),
        a_file("note.txt", "text"),
    ),
    "out where nothing can be made": Case(2, ("/proc", "out="), ("out=/proc/nowhere",)),
    "out in the home of nobody": Case(2, ("out", "~nobody-at-all"), ("out=~nobody-at-all/x",)),
    "data in the home of nobody": Case(2, ("data.root", "~nobody-at-all"), ("data.root=~nobody-at-all/x",)),
    "empty out": Case(2, ("out", "is empty"), ("out=''",)),
    "limit below no row": Case(2, ("data.max_train_rows", "greater than or equal to 0"), ("data.max_train_rows=-5",)),
    "limit of no row": Case(3, ("no row left", "data.max_train_rows"), ("data.max_train_rows=0",)),
    "limit of one task below no row": Case(
        2, ("data.max_train_rows.mini/entail2", "equal to 0"), ("data.max_train_rows={mini/entail2: -5}",)
    ),
    "more threads than any machine has": Case(2, ("training.threads", "1024"), ("training.threads=100000",)),
    "no share of the rows": Case(2, ("data.fraction", "greater than 0"), ("data.fraction=0",)),
    "more than all rows": Case(2, ("data.fraction", "less than or equal to 1"), ("data.fraction=1.5",)),
    "no row to score": Case(2, ("data.max_dev_rows", "greater than or equal to 1"), ("data.max_dev_rows=0",)),
    "start from a run that is missing": Case(3, ("nowhere",), ("init.from=nowhere", "stages=[joint]")),
    "start from a path with NUL": Case(2, ("init.from", "NUL"), ('init.from="a\\0b"', "stages=[joint]")),
    "deep out": Case(3, ("glue/rte",), ("tasks=[glue/rte]", "out=a/b/c/run")),
    "cache that is a file": Case(3, ("note.txt", "data.cache"), ("data.cache=note.txt",), a_file("note.txt", "text")),
}


def listing(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def assert_said(error: str, verb: str, told: tuple[str, ...]) -> None:
    """One message after what was logged, short, that names the place; and no sign of an error inside the program."""
    assert error.count(f"mtl {verb}: ") == 1, error
    message = error[error.index(f"mtl {verb}: ") :]
    assert len(message.strip().splitlines()) <= 3, message
    assert len(message) < 1500, message
    assert "Traceback" not in error
    for part in told:
        assert part in message, message


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case, directory, cache = CASES[name], tmp_path / "here", tmp_path / "cache"
    directory.mkdir()
    case.prepare(directory)
    monkeypatch.chdir(directory)
    monkeypatch.setenv("MTL_CACHE_DIR", str(cache))
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    before = listing(directory)
    argv = [*settings(Path("run")), *case.overrides]
    assert main(["run", *argv]) == case.code, capsys.readouterr().err
    assert_said(capsys.readouterr().err, "run", case.told)
    assert listing(directory) == before
    # What was tokenised before the fault may stay, whole; of the rest nothing but locks.
    stores = [path for path in cache.glob("tokens/*") if path.suffix != ".lock"]
    assert all((path / "manifest.json").is_file() for path in stores)


def test_a_run_directory_that_exists(
    joint_run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(joint_run.path)
    assert main(["run", *settings(joint_run.path, *JOINT)]) == 2
    assert_said(capsys.readouterr().err, "run", (str(joint_run.path), "--resume", "--overwrite", "out="))
    assert listing(joint_run.path) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("training.updates=9", "training.updates: 8 -> 9"),
        ("joint.optimizer.learning_rate=0.5", "optimizer.learning_rate: 0.001 -> 0.5"),
        ("tasks=[mini/entail2]", "tasks: "),
        ("seed=2", "seed: 1 -> 2"),
    ],
)
def test_a_config_changed_on_resume(
    change: str, told: str, joint_run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(joint_run.path)
    assert main(["run", *settings(joint_run.path, *JOINT, change), "--resume"]) == 2
    assert_said(capsys.readouterr().err, "run", (str(joint_run.path), told, "out="))
    assert listing(joint_run.path) == before


@pytest.mark.parametrize("name", ["environment.json", "config.yaml", "joint/stage.json"])
def test_a_run_whose_files_are_damaged_on_resume(
    name: str, joint_run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(joint_run.path, tmp_path / "run")
    (tmp_path / "run" / name).write_text("{broken", encoding="utf-8")
    assert main(["run", *settings(tmp_path / "run", *JOINT), "--resume"]) in (2, 3)
    assert_said(capsys.readouterr().err, "run", (name,))


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (["eval", "nowhere"], 3, "nowhere"),
        (["table", "nowhere"], 3, "nowhere"),
        (["compare", "nowhere", "nowhere"], 3, "nowhere"),
        (["plan", "quickstart", "--plugin", "../x"], 2, "../x"),
        (["plan", "quickstart", "tasks=[../x]"], 2, "../x"),
        (["prepare", "quickstart", "tasks=[glue/rte]"], 3, "glue/rte"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_other_verbs(
    argv: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == code
    assert_said(capsys.readouterr().err, argv[0], (told,))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert main(["run", *settings(tmp_path / "run")]) == 2
    assert_said(capsys.readouterr().err, "run", (str(tmp_path), "out="))
