from pathlib import Path

import pytest

from mtl.cli import main
from mtl.records import ResultRecord, write_result


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's directory with the result of a joint stage in which nothing was scored."""
    stage = {"tasks": {}, "suites": {}, "cost": {}}
    result = {
        "status": "stopped",
        "seed": 4,
        "arm_hash": "0123456789abcdef",
        "run_hash": "1",
        "partial": False,
        "encoder": {"path": "some/encoder"},
        "stages": {"joint": stage},
    }
    write_result(tmp_path / "result.json", ResultRecord.model_validate(result))
    return tmp_path


@pytest.mark.parametrize(
    ("layout", "start"), [("text", "arm 0123456789ab\n"), ("md", "Arm `0123456789ab`\n"), ("csv", "arm,task,")]
)
def test_each_layout_is_printed(layout: str, start: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run), "--format", layout]) == 0
    assert capsys.readouterr().out.startswith(start)


def test_a_run_that_is_not_complete_is_marked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run)]) == 0
    assert "the run of seed 4 is not complete: stopped" in capsys.readouterr().out


def test_no_run_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(tmp_path / "nothing")]) == 3
    assert "no result.json" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--primary", "joint=glue"], ["--allow-different", "data"]])
def test_what_needs_a_baseline_says_so(flags: list[str], run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run), *flags]) == 2
    assert "a baseline; name an arm" in capsys.readouterr().err


def test_a_primary_comparison_has_an_arm_and_a_score(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run), "--baseline", "joint", "--primary", "joint"]) == 2
    assert "such as joint=glue" in capsys.readouterr().err


def test_a_baseline_that_is_not_there(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run), "--baseline", "single"]) == 2
    assert "there is no arm 'single'; there are joint" in capsys.readouterr().err
