from pathlib import Path

import pytest

from mtl import api
from mtl.cli import main


def test_the_directory_written_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[object] = []

    def export(run: object, directory: str, **options: object) -> Path:
        seen.append((run, options))
        return Path(directory)

    monkeypatch.setattr(api, "export", export)
    assert main(["export", "a/run", "--task", "glue/rte", "a/model", "--stage", "finetune"]) == 0
    assert seen == [("a/run", {"task": "glue/rte", "stage": "finetune"})]
    assert capsys.readouterr().out == "a/model\n"


def test_a_task_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "a/run", "a/model"]) == 2
    assert "--task" in capsys.readouterr().err


def test_a_directory_with_content_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["export", "no/run", "--task", "glue/rte", str(tmp_path)]) == 2
    assert "is there already, with content" in capsys.readouterr().err
