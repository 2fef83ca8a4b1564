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

    The process is in a session of its own, so that Ctrl-C reaches it only through whoever started it. On Linux the
    system sends it SIGTERM when the thread that called this ends, however it ends, so that it saves itself and stops;
    elsewhere it finishes the run.
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
            preexec_fn=_bound_to_parent(),
        )


def _bound_to_parent() -> Callable[[], None] | None:
    """What the new process does first: asks for SIGTERM at its parent's death. None where no system offers that."""
    if not sys.platform.startswith("linux"):
        return None
    # Loaded here, since little may be done between fork and exec.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # It died before it could be asked about.
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
