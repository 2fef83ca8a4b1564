"""The README's example of a user's own data, done as it is told, in an empty directory."""

import re
import shlex
from pathlib import Path

import pytest
from package_sources import REPOSITORY

from mtl.cli import main
from mtl.records import read_result
from mtl.tasks import registry

# Nothing that the example is about: the same commands on fewer rows.
SHORT = ("training.updates=2", "training.rows_per_update=8", "training.threads=1", "logging.tensorboard=false")


def section() -> str:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return readme.split("## Your own data\n")[1].split("\n## ")[0]


def block(language: str) -> str:
    """The one block of a language, or of none."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", section(), flags=re.MULTILINE | re.DOTALL)
    (found,) = (text for name, text in fences if name == language)
    return str(found)


def test_from_a_csv_file_to_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.chdir(tmp_path)
    for name in ("reviews.csv", "reviews_dev.csv"):
        Path(name).write_text(block("csv"), encoding="utf-8")
    Path("reviews.yaml").write_text(block("yaml"), encoding="utf-8")
    commands = [shlex.split(line) for line in block("").splitlines()]
    assert [command[:2] for command in commands] == [[".venv/bin/mtl", verb] for verb in ("tasks", "run", "table")]
    for _, verb, *rest in commands:
        assert main([verb, *rest, *(SHORT if verb == "run" else ())]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"^mine/reviews +", shown, flags=re.MULTILINE), shown
    scored = read_result(Path("runs/reviews/result.json")).stages["joint"].tasks
    assert set(scored) == {"mini/entail2", "mini/acceptability", "mine/reviews"}
    assert scored["mine/reviews"].splits["dev"].rows == 4


def test_every_key_that_it_names_is_one_of_a_task_file() -> None:
    from mtl.tasks.custom import TaskDefinition

    named = set(re.findall(r"^\| (.*?) \| ", section(), flags=re.MULTILINE)) - {"key"}
    keys = {key for cell in named for key in re.findall(r"`(\w+)`", cell)}
    assert keys <= set(TaskDefinition.model_fields)
    assert len(keys) >= 7
