"""metrics.jsonl holds one valid JSON record a line, whatever was resumed, cut off or not finite."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mtl.training.tracking import MetricsLog


def strict(line: str) -> Any:
    """Parse as a parser that knows JSON alone would."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(line, parse_constant=refuse)


def records(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [strict(line) for line in text.splitlines()]


def test_a_record_is_a_line_and_is_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "joint" / "metrics.jsonl"
    log = MetricsLog(path, None, keep_bytes=0, step=0)
    log.write(1, {"train/toy/pairs/loss": 0.5})
    assert records(path) == [{"step": 1, "train/toy/pairs/loss": 0.5}]
    assert log.length == path.stat().st_size
    log.write(2, {})
    log.close()
    assert [record["step"] for record in records(path)] == [1, 2]


def test_resume_cuts_the_log_to_what_the_checkpoint_remembers(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, None, keep_bytes=0, step=0)
    log.write(1, {"a": 1.0})
    kept = log.length
    log.write(2, {"a": 2.0})
    log.close()
    with path.open("ab") as file:
        file.write(b'{"step": 3, "a"')  # A line that a crash cut off.
    log = MetricsLog(path, None, keep_bytes=kept, step=1)
    assert log.length == kept
    log.write(2, {"a": 7.0})
    log.close()
    assert records(path) == [{"step": 1, "a": 1.0}, {"step": 2, "a": 7.0}]


def test_log_that_lost_its_end_goes_on_after_its_last_whole_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2, "a')
    log = MetricsLog(path, None, keep_bytes=500, step=9)
    log.write(10, {"a": 1.0})
    log.close()
    assert records(path) == [{"step": 1}, {"step": 10, "a": 1.0}]
    assert "lost its end" in caplog.text


def test_values_that_are_not_finite_are_strings_that_float_reads(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, None, keep_bytes=0, step=0)
    log.write(1, {"nan": math.nan, "up": math.inf, "down": -math.inf, "fine": 1e300})
    log.close()
    found = records(path)[0]
    assert found == {"step": 1, "nan": "NaN", "up": "Infinity", "down": "-Infinity", "fine": 1e300}
    assert math.isnan(float(found["nan"]))
    assert float(found["down"]) == -math.inf


def test_tensorboard_shows_the_record_before_a_resume_once(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path, events = tmp_path / "metrics.jsonl", tmp_path / "tensorboard"
    log = MetricsLog(path, events, keep_bytes=0, step=0)
    for step in (1, 2, 3):
        log.write(step, {"loss": float(step)})
    log.close()
    log = MetricsLog(path, events, keep_bytes=0, step=2)
    log.write(3, {"loss": 30.0})
    log.hyperparameters({"seed": 1}, {"final/score": 50.0})
    log.close()
    shown = EventAccumulator(str(events))
    shown.Reload()
    assert [(event.step, event.value) for event in shown.Scalars("loss")] == [(1, 1.0), (2, 2.0), (3, 30.0)]
    assert [path.name for path in events.iterdir() if path.is_dir()] == []
