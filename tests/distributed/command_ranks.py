"""`mtl run` as several ranks: processes as torchrun would start them, but forked from one that has loaded everything.

What is to befall a rank is told to it as a function, which it calls before it starts.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from mtl.cli import main
from mtl.stages import devices  # noqa: F401 - loaded once for all ranks
from tests.distributed.disturbances import Disturbance
from tests.distributed.rank_processes import free_port


@dataclass
class CommandRanks:
    """The processes of a run, and where their output lies."""

    processes: list[ForkServerProcess]
    place: Path

    def exit_codes(self) -> list[int | None]:
        """Wait for all; those that have not ended a minute after the first of them have None."""
        wait([process.sentinel for process in self.processes], timeout=150)
        deadline = time.monotonic() + 60
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        return [process.exitcode for process in self.processes]

    def messages(self, rank: int) -> str:
        """What the rank wrote to stderr."""
        return (self.place / f"{rank}.err").read_text()

    def printed(self, rank: int) -> str:
        """What the rank wrote to stdout."""
        return (self.place / f"{rank}.out").read_text()


@contextmanager
def running(
    size: int, words: Sequence[str], place: Path, disturbances: Mapping[int, Disturbance] | None = None
) -> Iterator[CommandRanks]:
    """``mtl run`` with ``words`` on ``size`` ranks; none of them is left at the end. Output goes below ``place``."""
    place.mkdir(parents=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    port, told = free_port(), disturbances or {}
    processes = [
        context.Process(target=_work, args=(rank, size, port, ["run", *words], place, told.get(rank)))
        for rank in range(size)
    ]
    try:
        for process in processes:
            process.start()
        yield CommandRanks(processes, place)
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join(30)


def _work(rank: int, size: int, port: int, words: list[str], place: Path, disturb: Disturbance | None) -> None:
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(place / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    if disturb is not None:
        disturb()
    sys.exit(main(words))
