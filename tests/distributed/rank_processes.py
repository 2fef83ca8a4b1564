"""Functions run by several processes at once, as torchrun would start them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import torch
import torch.multiprocessing

from mtl.runtime.ranks import Ranks, joined_ranks

Job = Callable[[Ranks, Path], None]


def on_ranks(job: Job, size: int, out: Path) -> None:
    """Call ``job(ranks, out)`` in ``size`` new processes; an error in one of them is raised here."""
    torch.multiprocessing.spawn(_work, (job, size, free_port(), out), nprocs=size)  # type: ignore[no-untyped-call]


def _work(rank: int, job: Job, size: int, port: int, out: Path) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    with joined_ranks(torch.device("cpu")) as ranks:
        job(ranks, out)


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
