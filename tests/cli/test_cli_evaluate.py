import pytest

from mtl import api
from mtl.cli import main
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
