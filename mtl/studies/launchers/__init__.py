"""How the runs of a study are carried out: in this process, in processes of this machine, or as jobs of a cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mtl.studies.expand import PlannedRun

STOPPED = (75, 130)
"""Exit codes of a run that was stopped by a signal and has saved itself."""


@dataclass(frozen=True)
class Start:
    """A run to be started or gone on with, and the file that holds its settings."""

    run: PlannedRun
    config: Path


@dataclass(frozen=True)
class Ended:
    """A run that is not at work any more, and the exit code of `mtl run`; negative: the signal that killed it.

    ``note``: what became of a run that was broken off and can be gone on with, where the exit code does not tell.
    """

    directory: Path
    exit_code: int
    note: str | None = None


class Launcher(Protocol):
    """Starts runs, each resumed where it was begun before, and tells which have ended; it decides nothing."""

    def room(self) -> int:
        """How many more runs can be started now."""
        ...

    def takes_over(self, directory: Path) -> bool:
        """Whether a run in use may be started all the same: an earlier launcher of this study started what is at it."""
        ...

    def start(self, start: Start) -> None:
        """Start a run, or have it started by the next call of ``ended``."""
        ...

    def queued(self) -> frozenset[Path]:
        """Of the runs that were started and have not ended, those that wait for a place to be carried out at."""
        ...

    def ended(self) -> list[Ended]:
        """The runs that ended since this was asked last."""
        ...

    def stop(self) -> None:
        """Ask every run to save itself and stop, and return once all have."""
        ...
