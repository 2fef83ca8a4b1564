import json
from pathlib import Path

import pytest

from mtl.cli import main

TASKS = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")
# Computed independently from the official sizes.
GOLDEN = {
    ("1", "null"): (0.009010, 0.070961, 0.003865, 0.006057, 0.383360, 0.413763, 0.110361, 0.002624),
    ("2", "null"): (0.044207, 0.124066, 0.028953, 0.036248, 0.288366, 0.299583, 0.154721, 0.023855),
    ("5", "null"): (0.091092, 0.137639, 0.076906, 0.084138, 0.192868, 0.195834, 0.150349, 0.071173),
    ("1", "131072"): (0.018806, 0.148119, 0.008067, 0.012644, 0.288264, 0.288264, 0.230359, 0.005476),
}


@pytest.mark.parametrize(("temperature", "cap"), GOLDEN)
def test_plan_shows_the_golden_probabilities(
    temperature: str, cap: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = ["tasks=[glue,-glue/wnli]", f"sampling.temperature={temperature}", f"sampling.cap={cap}"]
    assert main(["plan", "glue", "--official-sizes", *settings, "stages=[joint]"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  glue/")]
    shown = {row[0].removeprefix("glue/"): (float(row[4]), float(row[5])) for row in rows}
    assert shown == {task: (share, share) for task, share in zip(TASKS, GOLDEN[temperature, cap], strict=True)}
    assert list(tmp_path.iterdir()) == [], "a plan writes nothing"


def test_text_and_json_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "--json", "training.epochs=2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [stage["stage"] for stage in document["stages"]] == ["single", "joint", "finetune"]
    joint = document["stages"][1]["models"][0]
    assert main(["plan", "quickstart", "training.epochs=2"]) == 0
    shown = capsys.readouterr().out
    assert f"joint: one model of {len(joint['tasks'])} tasks, {joint['updates']:,} updates" in shown
    for task in joint["tasks"]:
        assert f"{task['share']:.6f}" in shown


def test_what_only_one_task_has_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "task_overrides.mini/entail2.optimizer.learning_rate=3e-4"]) == 0
    assert capsys.readouterr().out.count("only for mini/entail2: optimizer.learning_rate=0.0003") == 2


def test_unknown_numbers_are_shown_as_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "stages=[joint]", "training.tokens_per_update=2048"]) == 0
    shown = capsys.readouterr().out
    assert "an unknown number of updates" in shown
    assert "known only once the rows are tokenised" in shown


def test_missing_data_is_exit_code_3_and_told_how_to_mend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MTL_DATA_DIR", raising=False)
    assert main(["plan", "glue"]) == 3
    message = capsys.readouterr().err
    assert "MTL_DATA_DIR" in message
    assert "--official-sizes" in message
