"""How a run of a study stands, read from its directory each time: nothing else is believed."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mtl.atomic import write_text_atomically
from mtl.errors import DataError
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.runtime.lock import is_taken

RunState = Literal["complete", "in use", "failed", "interrupted", "new"]


class Failure(BaseModel):
    """The content of failure.json: how a run ended that a launcher saw fail."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exit_code: int
    message: str


def state_of(path: Path) -> RunState:
    """The state of the run at ``path``: a complete result counts whatever came before, a failure until it is retried.

    ``in use``: a process is at work there, or one of another host may be. ``interrupted``: it was begun, and resuming
    it goes on from its last checkpoint. DataError where a file is damaged.
    """
    run = RunDirectory(path)
    status = read_result(run.result).status if run.result.is_file() else None
    if status == "complete":
        return "complete"
    if is_taken(run.lock):
        return "in use"
    if run.failure.is_file() or status == "failed":
        return "failed"
    return "interrupted" if run.config.is_file() else "new"


def note_failure(path: Path, failure: Failure) -> None:
    """Keep how the run at ``path`` failed, until :func:`forget_failure`."""
    path.mkdir(parents=True, exist_ok=True)
    write_text_atomically(RunDirectory(path).failure, failure.model_dump_json(indent=2) + "\n")


def forget_failure(path: Path) -> None:
    """The run at ``path`` is tried again."""
    RunDirectory(path).failure.unlink(missing_ok=True)


def read_failure(path: Path) -> Failure | None:
    """How the run at ``path`` failed, where a launcher saw it; DataError where the file is damaged."""
    file = RunDirectory(path).failure
    if not file.is_file():
        return None
    try:
        return Failure.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise DataError(f"{file} is damaged: delete it, and the run is tried again") from error
