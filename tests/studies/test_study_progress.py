"""The line that says how far a study is."""

import json
import logging
from pathlib import Path

import pytest

from mtl.studies.progress import Counts, LiveView, seconds_left
from mtl.studies.run_progress import Advance


def unknown(seconds: float) -> Advance:
    return Advance(seconds, None, None)


def test_the_time_left_follows_from_finished_runs() -> None:
    assert seconds_left([], [unknown(3.0)], 5, 2) is None
    assert seconds_left([10.0, 20.0], [], 4, 2) == 30.0
    # Two more for 15 s each, one that is 5 s old, and one that takes longer than usual already.
    assert seconds_left([15.0], [unknown(5.0), unknown(99.0)], 2, 2) == 20.0


def test_the_time_left_is_told_before_any_run_has_finished() -> None:
    # One that needs 30 s more, and 40 s for each of three others; the second has been at it for longer already.
    assert seconds_left([], [Advance(10.0, 40.0, 30.0), unknown(40.0)], 3, 2) == 75.0
    # Resumed when it was half done.
    assert seconds_left([], [Advance(10.0, 40.0, 10.0)], 0, 1) == 10.0


def test_a_line_when_something_changed_or_long_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mtl")
    now = 0.0
    view = LiveView("sweep", 3, tmp_path / "status.json", lambda: now)
    counts = Counts(done=1, running=1, queued=0, elsewhere=0, failed=0, left=1)
    for seconds, counted in (
        (0, counts),
        (1, counts),
        (30, counts),
        (61, counts),
        (62, Counts(2, 0, 1, 0, 0, 0)),
        (70, Counts(2, 0, 0, 1, 0, 0)),
    ):
        now = float(seconds)
        view.show(counted, 300.0, {"a, seed 1": "complete"})
    view.close()
    assert [record.getMessage() for record in caplog.records] == [
        "sweep: 1 of 3 runs done, 1 running, 0 failed, 1 left, about 5 min to go",
        "sweep: 1 of 3 runs done, 1 running, 0 failed, 1 left, about 5 min to go",
        "sweep: 2 of 3 runs done, 0 running, 1 at work elsewhere, 0 failed, 0 left",
    ]
    assert json.loads((tmp_path / "status.json").read_text())["runs"] == {"a, seed 1": "complete"}
