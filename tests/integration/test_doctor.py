"""`mtl doctor` tells beforehand whether a run could start, and changes nothing."""

import json
from pathlib import Path

import pytest
from tiny_runs import settings

from mtl.cli import main
from mtl.stages import doctor
from mtl.stages.doctor import Finding


def findings(argv: list[str], capsys: pytest.CaptureFixture[str], code: int) -> dict[str, Finding]:
    assert main(["doctor", *argv, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["ready"] == (code == 0)
    return {finding["name"]: Finding(**finding) for finding in document["findings"]}


def rte(root: Path, *splits: str) -> None:
    (root / "glue" / "RTE").mkdir(parents=True, exist_ok=True)
    for split in splits:
        (root / "glue" / "RTE" / f"{split}.tsv").write_text(
            "index\tsentence1\tsentence2\tlabel\n0\tIt rains.\tIt is wet.\tentailment\n", encoding="utf-8"
        )


def test_a_config_that_could_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(settings(tmp_path / "run"), capsys, 0)
    assert found["mini/entail2"].state == "ok"
    assert found["encoder"].state == "ok"
    assert found["threads"].text.startswith("1,")
    assert found["torch"].topic == "software"
    assert "GiB free" in found["cache"].text
    assert list(tmp_path.iterdir()) == []


def test_missing_data_are_named_with_both_ways_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rte(tmp_path, "train")
    argv = settings(tmp_path / "run", "tasks=[mini/entail2,glue/rte]", f"data.root={tmp_path}")
    missing = findings(argv, capsys, 3)["glue/rte"]
    assert missing.state == "missing"
    assert missing.text == "train 1 of 2,490; dev none of 277 rows"
    assert missing.mend is not None
    assert "place" in missing.mend
    assert str(tmp_path / "glue" / "RTE") in missing.mend
    assert "dev.tsv" in missing.mend
    assert "train.tsv" not in missing.mend
    assert "nyu-mll/glue rte" in missing.mend
    rte(tmp_path, "dev")
    assert findings(argv, capsys, 0)["glue/rte"].state == "partial"


def test_rows_that_were_fetched_from_the_hub_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "fetched_rows", lambda spec, split: {"train": 2490, "dev": 277}[split])
    found = findings(settings(tmp_path / "run", "tasks=[glue/rte]"), capsys, 0)["glue/rte"]
    assert (found.state, found.text) == (
        "ok",
        "train 2,490 of 2,490; dev 277 of 277 rows (train, dev from the hub's cache)",
    )


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("encoder={kind: pretrained, path: ./nowhere}", "encoder"),
        ("encoder={kind: pretrained, path: nobody/nothing}", "encoder"),
        ("training.device=cuda:99", "cuda:99"),
    ],
)
def test_what_else_can_be_missing(setting: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(settings(tmp_path / "run", setting), capsys, 3)[name].state == "missing"
    assert main(["doctor", *settings(tmp_path / "run", setting)]) == 3
    assert capsys.readouterr().out.splitlines()[-1] == "not ready: 1 missing"


def test_a_survey_misses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = findings([], capsys, 0)
    assert found["glue/rte"].state == "note"
    assert found["glue/rte"].mend is not None
    assert {"quickstart", "glue", "glue_minilm"} <= set(found)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "-> place train.tsv, dev.tsv in <data root>/glue/RTE" in shown
    assert "mtl doctor CONFIG" in shown


def test_the_environment_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("MTL_DATA_DIR", "/somewhere/else")
    found = findings([], capsys, 0)
    assert found["HF_HUB_OFFLINE"].text == "1 (nothing is downloaded)"
    assert found["data root"].text == "/somewhere/else is not there"


def test_a_config_that_cannot_be_carried_out_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *settings(tmp_path / "run", "stages=[finetune]")]) == 2
    assert "joint comes before it" in capsys.readouterr().err
