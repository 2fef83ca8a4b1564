"""Signals: noted without ending anything, except the second Ctrl-C, and handlers put back."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtl.errors import StoppedError
from mtl.runtime.signals import StopSignals

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)}
    yield
    for number, handler in before.items():
        assert signal.getsignal(number) is handler


@pytest.mark.parametrize(("name", "exit_code"), [("SIGTERM", 75), ("SIGUSR1", 75), ("SIGINT", 130)])
def test_a_signal_is_noted_and_becomes_an_error_when_asked(name: str, exit_code: int) -> None:
    with StopSignals() as signals:
        signals.raise_if_requested()
        os.kill(os.getpid(), signal.Signals[name])
        assert signals.requested == name
        with pytest.raises(StoppedError, match=rf"{name}.*--resume") as caught:
            signals.raise_if_requested()
    assert caught.value.exit_code == exit_code


def test_the_first_signal_counts() -> None:
    with StopSignals() as signals:
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        assert signals.requested == "SIGUSR1"


def test_the_second_interrupt_leaves_at_once_and_so_does_every_later_one() -> None:
    with StopSignals():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)


def test_earlier_handlers_are_back_even_after_an_error() -> None:
    def handler(*_: object) -> None:
        pass

    before = signal.signal(signal.SIGUSR1, handler)
    with pytest.raises(ZeroDivisionError), StopSignals():
        _ = 1 / 0
    assert signal.signal(signal.SIGUSR1, before) is handler


def test_outside_the_main_thread_nothing_is_installed() -> None:
    found: list[object] = []

    def body() -> None:
        with StopSignals() as signals:
            found.extend([signal.getsignal(signal.SIGTERM), signals.requested])

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert found == [before, None]


_LOOP = """
import sys, time
from mtl.errors import StoppedError
from mtl.runtime.signals import StopSignals
try:
    with StopSignals() as signals:
        print("ready", flush=True)
        while signals.requested is None or sys.argv[1] == "deaf":
            time.sleep(0.01)
            if signals.requested and sys.argv[1] == "deaf":
                print("noted", flush=True); time.sleep(30)
        print("saved", flush=True)
        signals.raise_if_requested()
except StoppedError as error:
    sys.exit(error.exit_code)
"""


def _start(mode: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _LOOP, mode], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize(("name", "exit_code"), [("SIGTERM", 75), ("SIGUSR1", 75), ("SIGINT", 130)])
def test_a_process_saves_before_it_leaves(name: str, exit_code: int) -> None:
    child = _start("listening")
    child.send_signal(signal.Signals[name])
    output, errors = child.communicate(timeout=20)
    assert output == "saved\n"
    assert child.returncode == exit_code
    assert f"{name}: stopping" in errors


def test_a_process_that_does_not_get_there_leaves_at_the_second_interrupt() -> None:
    child = _start("deaf")
    assert child.stdout is not None
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "noted\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0
