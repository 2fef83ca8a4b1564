"""A task of the user's own, from its file to the table, to a resume, and to a score by another task's head."""

import json
from pathlib import Path

import pytest
from tiny_runs import ACCEPTABILITY, ENTAIL, result_of, settings

from mtl.cli import main
from mtl.tasks import registry

DEFINITION = """\
name: mine/pairs
files: {train: pairs.csv, dev: pairs_dev.csv}
texts: [first, second]
label: same
labels: {"0": different, "1": same}
metrics: [accuracy, f1]
positive: same
"""
ROWS = ["the dog walks,the hound walks,1", '"the cat sits",the dog sits,0', "a crow talks,a crow speaks,1", "x,y,0"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a task file and its rows."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.chdir(tmp_path)
    for name in ("pairs.csv", "pairs_dev.csv"):
        Path(name).write_text("\n".join(["first,second,same", *ROWS]) + "\n", encoding="utf-8")
    Path("pairs.yaml").write_text(DEFINITION, encoding="utf-8")
    return tmp_path


def run(*overrides: str, out: str = "run") -> int:
    """A tiny run with the user's task beside a shipped one."""
    tasks = f"tasks=[{ENTAIL},./pairs.yaml]"
    return main(["run", *settings(Path(out), "stages=[single,joint]", "training.updates=4", tasks, *overrides)])


def test_it_is_trained_jointly_and_stands_in_the_table(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    (line,) = [line for line in shown.splitlines() if line.startswith("mine/pairs ")]
    assert "mean of accuracy, f1" in line
    assert len(line.split()) == 1 + 4 + 2
    result = json.loads(Path("run/result.json").read_text())
    assert result["stages"]["joint"]["tasks"]["mine/pairs"]["splits"]["dev"]["rows"] == 4
    assert (own / "run" / "single" / "mine" / "pairs" / "predictions" / "mine" / "pairs" / "dev.parquet").is_file()


def test_a_run_is_whole_without_the_task_file(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    scored = result_of(Path("run"))["stages"]["joint"]["tasks"]["mine/pairs"]["splits"]["dev"]["metrics"]
    registry._TASKS.pop("mine/pairs")
    # Turned round, every prediction would be taken for the other label.
    Path("pairs.yaml").write_text(DEFINITION.replace('"0": different, "1": same', '"1": different, "0": same'))
    capsys.readouterr()
    assert main(["eval", "run", "--task", "mine/pairs"]) == 0
    again = capsys.readouterr().out
    assert f"{scored['accuracy']:.4f}" in again
    assert f"{scored['f1']:.4f}" in again


def test_a_resume_notices_a_changed_definition_and_changed_rows(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert run("--resume") == 0
    Path("pairs.yaml").write_text(DEFINITION.replace("[accuracy, f1]", "[accuracy]"))
    capsys.readouterr()
    assert run("--resume") == 2
    assert 'definitions.mine/pairs.metrics: ["accuracy", "f1"] -> ["accuracy"]' in capsys.readouterr().err
    Path("pairs.yaml").write_text(DEFINITION)
    Path("pairs.csv").write_text("\n".join(["first,second,same", *ROWS, *ROWS]) + "\n")
    assert run("--resume") == 2
    assert "the data of mine/pairs changed since run was started" in capsys.readouterr().err


def test_where_the_files_lie_sets_no_arms_apart(own: Path) -> None:
    assert run(out="first") == 0
    moved = own / "moved"
    moved.mkdir()
    for name in ("pairs.csv", "pairs_dev.csv", "pairs.yaml"):
        (own / name).rename(moved / name)
    assert run(f"tasks=[{ENTAIL},moved/pairs.yaml]", out="second") == 0
    (moved / "pairs.yaml").write_text(DEFINITION.replace("positive: same", "positive: different"))
    assert run(f"tasks=[{ENTAIL},moved/pairs.yaml]", out="third") == 0
    hashes = [result_of(Path(name))["arm_hash"] for name in ("first", "second", "third")]
    assert hashes[0] == hashes[1]
    assert hashes[2] not in hashes[:2]


def test_a_task_is_scored_by_the_head_of_another(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stages=[joint]", f"tasks=[{ENTAIL},{ACCEPTABILITY}]") == 0
    (own / "hans.jsonl").write_text(
        "".join(json.dumps({"a": "the dog walks", "b": "the dog runs", "gold": name}) + "\n" for name in ("in", "out"))
    )
    (own / "hans.yaml").write_text(
        "name: mine/hans\nfiles: {dev: hans.jsonl}\ntexts: [a, b]\nlabel: gold\nlabels: [in, out]\n"
        f"scored_by: {ENTAIL}\nlabel_map: {{entailment: in, not_entailment: out}}\n"
    )
    capsys.readouterr()
    assert main(["eval", "run", "--task", "./hans.yaml"]) == 0
    # Both rows are alike, so whichever the head says, one of two is right.
    assert capsys.readouterr().out.splitlines()[1].split() == ["mine/hans", "dev", "2", "accuracy", "50.0000"]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"pairs.csv": "first,second,same\na,b,1\na,b\n"}, 3, "pairs.csv, line 3: 2 columns where the header has 3"),
        ({"pairs.csv": "first,second,same\na,b,-1\n"}, 3, "pairs.csv, line 2: label '-1' in column 'same'"),
        ({"pairs.csv": "first,second,same\n"}, 3, "mine/pairs train: there are no rows"),
        ({"pairs.csv": "first,zweiter,same\na,b,1\n"}, 3, "pairs.csv: column 'second' is absent"),
        ({"pairs.yaml": DEFINITION.replace("pairs_dev", "none")}, 3, "mine/pairs, split dev: no such file"),
        ({"pairs.yaml": DEFINITION.replace("mine/pairs", "glue/rte")}, 2, "in the shipped suite 'glue'"),
        ({"pairs.yaml": DEFINITION.replace("mine/pairs", "mine/../../x")}, 2, "is no name"),
        ({"pairs.yaml": "- 1\n"}, 2, "a config file is a mapping"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    own: Path, change: dict[str, str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in change.items():
        Path(name).write_text(content, encoding="utf-8")
    assert run() == code
    assert message in capsys.readouterr().err
    assert not (own / "run").exists()
