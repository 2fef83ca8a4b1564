"""Starting the ranks of a run on this machine, by torch's own elastic launcher, and what became of them."""

import json
import logging
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from mtl.errors import LostRankError, MtlError, RelayedError

_PASSED_ON = ("SIGTERM", "SIGINT", "SIGUSR1")
# After a signal the ranks save a checkpoint; torch kills those that are not done by then.
_SAVING_SECONDS = 3600


def launch_ranks(number: int, arguments: Sequence[str]) -> None:
    """Run ``python -m mtl`` with ``arguments`` as ``number`` ranks, and return once all have ended well.

    SIGTERM, SIGINT and SIGUSR1 are passed on to them. Their messages go to stderr, their standard output nowhere.
    Raises RelayedError with the exit code of the ranks for what one of them has reported, and LostRankError where one
    was killed, or a signal came before they had begun.
    """
    with tempfile.TemporaryDirectory(prefix="mtl-ranks-") as place, _torch_contained():
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=number,
            run_id=uuid.uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=place, redirects=Std.OUT),
            signals_to_handle=",".join(_signals()),
            shutdown_timeout=_SAVING_SECONDS,
        )
        # Torch substitutes $ in arguments.
        words = [word.replace("$", "$$") for word in ("-m", "mtl", *arguments)]
        try:
            elastic_launch(config, sys.executable)(*words)
        except ChildFailedError as error:
            codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
            raise _outcome(_reported(Path(place)), codes) from None
        except SignalException as stopped:
            raise _outcome(_reported(Path(place)), {}, stopped.sigval) from None


def _signals() -> list[str]:
    """Those to pass on; SIGHUP as well where nobody, such as nohup, has asked to ignore it."""
    return [*_PASSED_ON, *(["SIGHUP"] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else [])]


def _outcome(
    reported: Sequence[Mapping[str, Any]], codes: Mapping[int, int], passed_on: signal.Signals | None = None
) -> MtlError:
    """What to raise for the errors that ranks left, their exit codes, and a signal that was passed on to them."""
    # A rank that lost another ends with 1: whatever else there is came first.
    telling = [error for error in reported if error["exit_code"] != 1]
    if telling:
        return RelayedError(telling[0]["message"], telling[0]["exit_code"])
    if passed_on is not None:
        lost = LostRankError(
            f"{passed_on.name} came while the ranks were starting or ending; --resume continues from the last "
            "checkpoint, where there is one"
        )
        lost.exit_code = 128 + passed_on
        return lost
    # The ranks that are left over when one has ended are ended by torch, with SIGTERM.
    failed = [rank for rank, code in codes.items() if code > 0]
    killed = {rank: signal.Signals(-code).name for rank, code in sorted(codes.items()) if code < 0}
    first = {rank: name for rank, name in killed.items() if name != "SIGTERM"} or ({} if failed else killed)
    if first:
        ends = ", ".join(f"rank {rank} was killed by {name}" for rank, name in first.items())
        return LostRankError(f"{ends}; --resume continues from the last checkpoint")
    message = reported[0]["message"] if reported else "a rank of the run has failed; its own message says why"
    return RelayedError(message, 1)


def _reported(place: Path) -> list[dict[str, Any]]:
    """The errors that ranks left (see :func:`mtl.runtime.torchrun.leave_error`), the earliest first."""
    documents = [json.loads(path.read_bytes()) for path in sorted(place.rglob("error.json"))]
    return sorted(
        (document for document in documents if "exit_code" in document), key=lambda document: document["timestamp"]
    )


@contextmanager
def _torch_contained() -> Iterator[None]:
    """Without torch's own messages about ranks that end, and with what it sets in this process taken back."""
    messages = logging.getLogger("torch.distributed.elastic")
    quiet, propagated = logging.NullHandler(), messages.propagate
    handlers = {number: signal.getsignal(number) for number in map(signal.Signals.__getitem__, _signals())}
    variable = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE")
    messages.addHandler(quiet)
    messages.propagate = False
    try:
        yield
    finally:
        messages.propagate = propagated
        messages.removeHandler(quiet)
        for number, handler in handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        os.environ.pop("TORCHELASTIC_SIGNALS_TO_HANDLE", None)
        if variable is not None:
            os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = variable
