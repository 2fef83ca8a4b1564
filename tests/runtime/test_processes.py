"""A process is recognised by number and start together."""

import os
import subprocess
import sys

import pytest

from mtl.runtime.processes import is_running, process_start


def test_this_process_runs() -> None:
    assert is_running(os.getpid(), process_start(os.getpid()))
    assert is_running(os.getpid(), None)


def test_a_number_used_again_is_another_process() -> None:
    start = process_start(os.getpid())
    if start is None:
        pytest.skip("this system has no /proc")
    assert not is_running(os.getpid(), start - 1)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1])
def test_impossible_numbers_do_not_run(pid: int) -> None:
    assert not is_running(pid, None)
    assert process_start(pid) is None


def test_an_ended_process_does_not_run_even_before_it_is_collected() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        start = process_start(child.pid)
        assert is_running(child.pid, start)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(child.pid, start)
    assert not is_running(child.pid, start)
