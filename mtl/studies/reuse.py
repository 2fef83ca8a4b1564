"""Runs that another study has finished already, such as single-task baselines, taken over instead of run again."""

import logging
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.studies.expand import PlannedRun, expand, places
from mtl.studies.run_state import state_of
from mtl.studies.spec import read_study
from mtl.studies.study_files import Claims, StudyDirectory

_logger = logging.getLogger("mtl")


def take_over_finished(runs: Sequence[PlannedRun], directory: StudyDirectory, others: Sequence[Path]) -> int:
    """Copy from the studies in ``others`` every run of ``runs`` that is new here and complete there; how many.

    A run is the same where its identity (seed, settings, the run that it starts from), its data root and the origin of
    its tasks are. What data and weights hold is not compared: where they were changed in between, a table refuses to
    compare the runs. Its log says where it came from. ConfigError for a directory that holds no study.
    """
    found = {key: path for other in others for key, path in _finished(other).items()}
    claims, taken = Claims(directory), 0
    try:
        for run in runs:
            source = found.get((run.identity, *places(run.config)))
            if source is None or state_of(run.directory) != "new" or not claims.take(run):
                continue
            # Looked at once it is claimed: another launcher may have begun it a moment ago.
            if state_of(run.directory) == "new":
                _copy(source, run.directory)
                taken += 1
            claims.release(run)
    finally:
        claims.release_all()
    if others:
        _logger.info("%d of %d runs taken over from %s", taken, len(runs), ", ".join(map(str, others)))
    return taken


def _finished(path: Path) -> dict[tuple[object, ...], Path]:
    """The complete runs of the study in ``path``, by what makes them the same as another."""
    study = StudyDirectory(path.absolute())
    if not study.study.is_file():
        raise ConfigError(f"--reuse {path} holds no study.yaml: name the directory that a study wrote")
    planned = expand(read_study(study.study), study.path)
    return {
        (run.identity, *places(run.config)): run.directory for run in planned if state_of(run.directory) == "complete"
    }


def _copy(source: Path, destination: Path) -> None:
    """A run appears under its name whole or not at all."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    begun = destination.parent / f".{destination.name}.{secrets.token_hex(4)}.tmp"
    try:
        shutil.copytree(source, begun, ignore=lambda folder, names: [RunDirectory(source).lock.name])
        with RunDirectory(begun).log.open("a", encoding="utf-8") as log:
            log.write(f"taken over from {source}\n")
        os.rename(begun, destination)
    finally:
        shutil.rmtree(begun, ignore_errors=True)
