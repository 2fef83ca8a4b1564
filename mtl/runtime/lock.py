"""One trainer for a run directory: a lock file that says who holds it and outlives nobody.

The file holds host, process number, process start and command as JSON, and in a job of a Slurm cluster which one it is.
It appears with its content, in one step, so nobody ever reads half of it.
"""

import fcntl
import logging
import os
import secrets
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mtl.atomic import write_text_atomically
from mtl.errors import ConfigError
from mtl.runtime.processes import is_running, process_start
from mtl.runtime.slurm_job import SlurmJob, is_over, own_job

_logger = logging.getLogger("mtl")


class Holder(BaseModel):
    """The process that holds a lock. ``token`` tells apart two locks of one process.

    ``job`` is known for a process of a Slurm cluster: it tells from any host of the cluster whether it may still run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    pid: int
    process_start: int | None
    command: str
    token: str
    job: SlurmJob | None = None


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock file ``path``; None where there is none, or it says nothing that can be read."""
    try:
        return Holder.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def is_taken(path: Path) -> bool:
    """Whether someone may be at work behind the lock file ``path``: all but a process that is known to be gone, of this
    host, or of a job of the cluster that is over.
    """
    holder = holder_of(path)
    return path.exists() if holder is None else not _is_gone(holder)


def _is_gone(holder: Holder) -> bool:
    if holder.host == socket.gethostname():
        return not is_running(holder.pid, holder.process_start)
    return holder.job is not None and is_over(holder.job)


class RunLock:
    """Holds the lock file ``path`` while the ``with`` block runs; makes its directory where that is missing,
    and takes back what it made if nothing else came into it.

    Raises ``ConfigError`` where a living process holds it, or one on another host, about which nothing can be known
    from here unless it belonged to a job of this Slurm cluster. A lock whose process is gone is taken over; of several
    that try this at once, one succeeds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._made: list[Path] = []
        self._holder = Holder(
            host=socket.gethostname(),
            pid=os.getpid(),
            process_start=process_start(os.getpid()),
            command=" ".join(sys.argv),
            token=secrets.token_hex(8),
            job=own_job(),
        )

    def __enter__(self) -> Self:
        self._made = [place for place in self._path.parents if not place.exists()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._path.parent} cannot be made ({error.strerror}): choose another out=") from error
        while not (self._create() or self._take_over()):
            pass  # The lock changed hands while it was looked at: look again.
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A forked child leaves the lock to its parent; whoever took over by hand keeps what they took.
        if os.getpid() != self._holder.pid or holder_of(self._path) != self._holder:
            return
        self._path.unlink()
        for place in self._made:
            if any(place.iterdir()):
                break
            place.rmdir()

    def _create(self) -> bool:
        """Make the lock where there is none. A hard link, since it brings the content along and never replaces."""
        temporary = self._path.with_name(f".{self._path.name}.{self._holder.token}.tmp")
        write_text_atomically(temporary, self._holder.model_dump_json())
        try:
            os.link(temporary, self._path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def _take_over(self) -> bool:
        """Replace the lock of a dead process; False where the lock changed meanwhile.

        The right to replace a lock file is an advisory lock on that very file, which the system drops if we die. Those
        who wait for it find afterwards that another file stands in its place.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not self._is_still(descriptor):
                return False
            self._require_dead(holder_of(self._path))
            write_text_atomically(self._path, self._holder.model_dump_json())
            return True
        finally:
            os.close(descriptor)

    def _is_still(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _require_dead(self, other: Holder | None) -> None:
        if other is None:
            raise ConfigError(f"{self._path} is not a readable lock: if nothing trains there, delete that file")
        if other.host != self._holder.host and not _is_gone(other):
            raise ConfigError(
                f"the run is locked by process {other.pid} on {other.host} ({self._path}), which cannot be asked from "
                f"{self._holder.host}: if it no longer runs, delete that file"
            )
        if not _is_gone(other):
            raise ConfigError(
                f"the run is in use by process {other.pid} on {other.host} ({self._path}): "
                "wait for it, stop it, or change out="
            )
        _logger.warning("taking over %s: process %d, which held it, is gone", self._path, other.pid)
