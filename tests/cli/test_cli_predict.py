from pathlib import Path

import pytest

from mtl import api
from mtl.cli import main


def test_the_files_written_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[object] = []

    def predict(run: object, **options: object) -> dict[str, dict[str, Path]]:
        seen.append((run, options))
        return {"glue/mnli": {"test_matched": Path("a/m.parquet"), "test_mismatched": Path("a/mm.parquet")}}

    monkeypatch.setattr(api, "predict", predict)
    assert main(["predict", "a/run", "--task", "glue/mnli", "--stage", "single", "--out", "a"]) == 0
    assert seen == [
        ("a/run", {"stage": "single", "tasks": ["glue/mnli"], "split": "test", "out": "a", "precision": None})
    ]
    assert capsys.readouterr().out == "a/m.parquet\na/mm.parquet\n"


def test_what_is_no_run_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(tmp_path)]) == 3
    assert "no run directory" in capsys.readouterr().err
