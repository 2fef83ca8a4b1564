from pathlib import Path

import pytest

from mtl import api
from mtl.cli import main
from mtl.evaluation.diagnostics import TagDiagnosis, TagScore
from mtl.records import SplitRecord


def test_scores_are_printed_a_metric_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[object] = []

    def evaluate(run: object, **options: object) -> dict[str, dict[str, SplitRecord]]:
        seen.append((run, options))
        record = SplitRecord(metrics={"accuracy": 71.25, "f1": 80.0}, rows=1408, rows_sha256="0")
        return {"glue/mrpc": {"dev": record}}

    monkeypatch.setattr(api, "evaluate", evaluate)
    assert main(["eval", "a/run", "--task", "glue/mrpc", "--task", "mini", "--stage", "single", "--split", "dev"]) == 0
    assert seen == [("a/run", {"stage": "single", "tasks": ["glue/mrpc", "mini"], "split": "dev"})]
    assert capsys.readouterr().out == (
        "task       split   rows  metric      score\n"
        "glue/mrpc  dev    1,408  accuracy  71.2500\n"
        "glue/mrpc  dev    1,408  f1        80.0000\n"
    )


def test_a_stage_that_does_not_exist_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "a/run", "--stage", "both"]) == 2
    assert "invalid choice" in capsys.readouterr().err


def test_a_diagnostic_set_is_printed_by_its_tags_and_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    overall, logic = TagScore("all", 21.25, 1104), TagScore("Logic", -3.0, 364)
    diagnosis = TagDiagnosis(overall, (logic,), ())
    monkeypatch.setattr(api, "diagnose", lambda run, task, **options: diagnosis)
    monkeypatch.setattr(api, "evaluate", lambda run, **options: pytest.fail("nothing else was asked for"))
    out = tmp_path / "ax.json"
    assert main(["eval", "a/run", "--task", "glue/ax", "--out", str(out)]) == 0
    assert capsys.readouterr().out == (
        "glue/ax  tag      R3   rows\noverall  all    21.2  1,104\ncoarse   Logic  -3.0    364\n"
    )
    assert out.read_text() == diagnosis.json()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "ax.csv"], "one diagnostic set"),
        (["--task", "glue/rte", "--out", "ax.csv"], "one diagnostic set"),
        (["--task", "glue/ax", "--out", "ax.txt"], ".csv or .json"),
        (["--task", "glue/ax", "--out", "nowhere/ax.csv"], "no directory nowhere"),
    ],
)
def test_a_table_that_cannot_be_written_is_said_before_anything_is_run(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "a/run", *words]) == 2
    assert message in capsys.readouterr().err
