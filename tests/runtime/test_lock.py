"""The lock: one holder at a time, dead holders recognised, living ones respected."""

import fcntl
import json
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mtl.errors import ConfigError
from mtl.runtime.lock import RunLock
from mtl.runtime.processes import process_start

ROOT = Path(__file__).parents[2]
DEAD = 2**22 + 1  # Above the largest process number of any Linux.


def _write(path: Path, **changes: object) -> bytes:
    holder = {"host": socket.gethostname(), "pid": DEAD, "process_start": 1, "command": "mtl run", "token": "old"}
    path.write_text(json.dumps(holder | changes))
    return path.read_bytes()


def test_the_file_says_who_holds_it_and_goes_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with RunLock(path):
        content = json.loads(path.read_text())
        assert content["host"] == socket.gethostname()
        assert content["pid"] == os.getpid()
        assert content["process_start"] == process_start(os.getpid())
        assert os.listdir(tmp_path) == ["run.lock"]
    assert os.listdir(tmp_path) == []


def test_a_directory_made_for_the_lock_goes_unless_it_was_used(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a/run.lock"):
        pass
    assert not (tmp_path / "a").exists()
    with RunLock(tmp_path / "a/run.lock"):
        (tmp_path / "a/config.yaml").touch()
    assert os.listdir(tmp_path / "a") == ["config.yaml"]


def test_all_directories_made_for_the_lock_go_up_to_one_that_was_used(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a/b/c/run.lock"):
        (tmp_path / "a/note").touch()
    assert os.listdir(tmp_path / "a") == ["note"]
    with RunLock(tmp_path / "d/e/run.lock"):
        pass
    assert os.listdir(tmp_path) == ["a"]


def test_it_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunLock(tmp_path / "run.lock"):
        _ = 1 / 0
    with RunLock(tmp_path / "run.lock"):
        pass


def test_a_living_holder_is_named_and_keeps_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with RunLock(path):
        before = path.read_bytes()
        with pytest.raises(ConfigError, match=rf"process {os.getpid()} on {socket.gethostname()} \({path}\)"):
            RunLock(path).__enter__()
        assert path.read_bytes() == before


@pytest.mark.parametrize("reused", [False, True])
def test_a_dead_holder_is_replaced_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reused: bool
) -> None:
    path = tmp_path / "run.lock"
    # A number used again: our own process has it now, but started at another time.
    _write(path, **({"pid": os.getpid(), "process_start": 1} if reused else {}))
    with caplog.at_level(logging.WARNING, logger="mtl"), RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()
        assert os.listdir(tmp_path) == ["run.lock"]
    assert "taking over" in caplog.text
    assert not path.exists()


def test_another_host_is_never_second_guessed(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    before = _write(path, host="elsewhere")
    with pytest.raises(ConfigError, match=r"elsewhere.*delete that file"):
        RunLock(path).__enter__()
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_an_unreadable_lock_is_left_to_the_user(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.lock").write_text(text)
    with pytest.raises(ConfigError, match="delete that file"):
        RunLock(tmp_path / "run.lock").__enter__()
    assert (tmp_path / "run.lock").read_text() == text


def test_a_lock_that_is_no_longer_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with RunLock(path):
        other = _write(path, host="elsewhere")
    assert path.read_bytes() == other


def test_a_lock_that_vanishes_while_it_is_looked_at_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.lock"
    _write(path)
    flock = fcntl.flock

    def flock_after_release(descriptor: int, operation: int) -> None:
        path.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_release)
    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_whoever_waited_for_a_lock_that_was_replaced_respects_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "run.lock", tmp_path / "other"
    _write(path)
    living = _write(other, pid=os.getpid(), process_start=process_start(os.getpid()))
    flock = fcntl.flock

    def flock_after_another_taker(descriptor: int, operation: int) -> None:
        if other.exists():
            os.replace(other, path)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_another_taker)
    with pytest.raises(ConfigError, match="in use"):
        RunLock(path).__enter__()
    assert path.read_bytes() == living


_TAKE = """
import sys, time
from pathlib import Path
from mtl.errors import ConfigError
from mtl.runtime.lock import RunLock
print("ready", flush=True)
sys.stdin.readline()
try:
    with RunLock(Path(sys.argv[1])):
        print("won", flush=True)
        sys.stdin.readline()
except ConfigError:
    print("refused", flush=True)
"""


@pytest.mark.parametrize("stale", [False, True])
def test_of_several_processes_one_gets_the_lock(tmp_path: Path, stale: bool) -> None:
    path = tmp_path / "run.lock"
    if stale:
        _write(path)
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", _TAKE, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    answers = []
    for taker in takers:
        assert taker.stdout is not None
        taker.stdout.readline()
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.write("\n")
        taker.stdin.flush()
    for taker in takers:
        assert taker.stdout is not None
        answers.append(taker.stdout.readline().strip())
    for taker in takers:
        taker.communicate("\n")
    assert sorted(answers) == ["refused", "refused", "refused", "won"]
    assert os.listdir(tmp_path) == []


def test_a_killed_holder_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    command = [sys.executable, "-c", _TAKE, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert [holder.stdout.readline().strip() for _ in range(2)] == ["ready", "won"]
        with pytest.raises(ConfigError):
            RunLock(path).__enter__()
        holder.kill()
        deadline = time.monotonic() + 10
        while holder.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    assert path.exists()
    with RunLock(path):
        pass


def test_a_forked_child_does_not_release_its_parents_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom mtl.runtime.lock import RunLock\n"
        "path = Path(sys.argv[1])\n"
        "with RunLock(path):\n    child = os.fork()\n    if child: os.waitpid(child, 0); print(path.exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    assert not path.exists()
