"""Whatever a user gets wrong is one clear message with its exit code: no traceback, and nothing left behind.

Here what is typed: settings, names, paths, and runs that are there already. Files are in test_bad_files.py.
"""

import os
import shutil
from pathlib import Path

import pytest
from refused_runs import LONG, Case, a_file, assert_refused, assert_said, listing
from tiny_runs import JOINT, settings

from mtl.cli import main
from mtl.rundir import RunDirectory

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


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(CASES[name], tmp_path, monkeypatch, capsys)


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
