"""What befalls a rank in a test: called in its process before the run starts there."""

import dataclasses
import errno
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mtl.errors import DataError
from mtl.stages import pipeline, train_one, training_files
from tests.integration.tiny_runs import stop_after_update, stop_in_evaluation

Disturbance = Callable[[], None]
"""Pickled on its way to the process it is for."""


def signal_in_update(step: int, number: signal.Signals) -> None:
    """The rank gets a signal right after its part of update ``step`` (from 0)."""
    stop_after_update(pytest.MonkeyPatch(), step, number)


def signal_in_evaluation(call: int, number: signal.Signals) -> None:
    """The rank gets a signal while the ``call``-th split (from 0) is evaluated."""
    stop_in_evaluation(pytest.MonkeyPatch(), call, number)


def signal_before_loading(number: signal.Signals) -> None:
    """The rank gets a signal before any data is loaded."""
    original = pipeline.start_hardware

    def start_hardware(*arguments: Any) -> Any:
        os.kill(os.getpid(), number)
        return original(*arguments)

    pipeline.start_hardware = start_hardware


def full_disk() -> None:
    """No checkpoint can be written: an error that is no MtlError."""

    def save_checkpoint(*arguments: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    training_files.save_checkpoint = save_checkpoint


def missing_tokenizer() -> None:
    """What every rank loads is missing on this one."""

    def load_tokenizer(*arguments: Any) -> None:
        raise DataError("no tokenizer on this machine")

    pipeline.load_tokenizer = load_tokenizer


def other_scores(scores: Sequence[float]) -> None:
    """Evaluations during training come to these scores on this rank."""
    original, replaced = train_one.score_snapshot, iter(scores)

    def score_snapshot(*arguments: Any, **named: Any) -> Any:
        return dataclasses.replace(original(*arguments, **named), score=next(replaced))

    train_one.score_snapshot = score_snapshot
