"""`mtl run` in a process of its own, which does not outlive the one that started it unnoticed."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mtl.rundir import RunDirectory
from mtl.runtime.processes import search_path

_PR_SET_PDEATHSIG = 1


def start_worker(
    config: Path, directory: Path, plugins: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start or resume the run with the settings in ``config``; what it says is added to its log.txt.

    The process is in a session of its own, so that Ctrl-C reaches it only through whoever started it. It ignores
    SIGUSR2, which Slurm sends to all processes of a job whose time is nearly over, and which would kill it. On Linux
    the system sends it SIGTERM when the thread that called this ends, however it ends, so that it saves itself and
    stops; elsewhere it finishes the run.
    """
    run = RunDirectory(directory)
    directory.mkdir(parents=True, exist_ok=True)
    flags = ["--resume"] if run.config.is_file() else []
    for name in plugins:
        flags += ["--plugin", name]
    with run.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "mtl", "run", str(config), *flags],
            env={**os.environ, "PYTHONPATH": search_path(), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_prepared(),
        )


def _prepared() -> Callable[[], None]:
    """What the new process does first: it ignores SIGUSR2 and, where the system offers that, asks for SIGTERM at its
    parent's death.
    """
    # Loaded here, since little may be done between fork and exec.
    prctl = ctypes.CDLL(None).prctl if sys.platform.startswith("linux") else None
    parent = os.getpid()

    def prepare() -> None:
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        if prctl is None:
            return
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # It died before it could be asked about.
            os.kill(os.getpid(), signal.SIGTERM)

    return prepare
