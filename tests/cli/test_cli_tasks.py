import json
from pathlib import Path

import pytest

from mtl.cli import main
from mtl.tasks.registry import expand, names


@pytest.fixture
def rte_root(tmp_path: Path) -> Path:
    """A data root with two of RTE's 2,490 training rows, and nothing else."""
    (tmp_path / "glue" / "RTE").mkdir(parents=True)
    lines = ["index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", "1\tc\td\tnot_entailment"]
    (tmp_path / "glue" / "RTE" / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_all_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "/" in line.split(" ")[0]]
    assert [name for name in listed if name in names()] == list(names())


def test_json_tells_what_is_here(rte_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "glue", f"data.root={rte_root}", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert tuple(entries) == expand(["glue"])
    rte = entries["glue/rte"]
    assert rte["data"] == "some files missing"
    assert rte["splits"] == {
        "train": {"rows_official": 2490, "rows": 2},
        "dev": {"rows_official": 277, "rows": None},
    }
    assert rte["labels"] == ["entailment", "not_entailment"]
    assert entries["glue/cola"]["data"] == "missing"


def test_primary_metrics_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "tasks=[glue/cola,mini/similarity]"]) == 0
    shown = capsys.readouterr().out
    assert "matthews* accuracy " in shown
    assert "0 to 5" in shown
    assert "generated" in shown


def test_real_data(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "glue", f"data.root={shared_data}", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["glue/rte"]["data"] == "complete"
    assert entries["glue/rte"]["splits"]["train"] == {"rows_official": 2490, "rows": 2490}
