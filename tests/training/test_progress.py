"""How far a training is: lines now and then where there is no terminal, and never a division by zero."""

import logging

import pytest

from mtl.training import progress
from mtl.training.progress import Progress


class Clock:
    """Time that passes only when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def test_a_line_every_few_seconds_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(monkeypatch)
    with caplog.at_level(logging.INFO, logger="mtl"):
        shown = Progress("joint", done=40, total=100)
        for _ in range(6):
            clock.now += 4.0
            shown.advance({"loss": 1.0})
        shown.close()
    # Six updates since the resume took 4 s each, and a line is due after more than 10 s.
    assert [record.getMessage() for record in caplog.records] == [
        "joint: update 43 of 100, about 228 s left",
        "joint: update 46 of 100, about 216 s left",
    ]


def test_a_fast_training_prints_no_line(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    Clock(monkeypatch)
    with caplog.at_level(logging.INFO, logger="mtl"):
        shown = Progress("joint", done=0, total=3)
        for _ in range(3):
            shown.advance(None)
        shown.close()
    assert not caplog.records
