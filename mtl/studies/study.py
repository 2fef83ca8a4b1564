"""A study from its file to its runs: expanded, checked, written down, carried out."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from mtl.errors import ConfigError
from mtl.studies.conduct import Outcome, conduct
from mtl.studies.equal import check_equal
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.launchers import Launcher
from mtl.studies.progress import LiveView
from mtl.studies.reuse import take_over_finished
from mtl.studies.spec import StudySpec
from mtl.studies.study_files import StudyDirectory, check_directory, write_study

LauncherName = Literal["inline", "local", "slurm"]
LAUNCHERS: tuple[LauncherName, ...] = get_args(LauncherName)

_logger = logging.getLogger("mtl")


def run_study(
    study: StudySpec,
    out: Path,
    *,
    launcher: LauncherName = "inline",
    workers: int | None = None,
    runs_per_device: int = 1,
    retry_failed: bool = False,
    reuse: Sequence[Path] = (),
    plugins: Sequence[str] = (),
) -> Outcome:
    """All runs of ``study`` that are not complete, below ``out``. A start that is refused writes nothing.

    Runs that a study in ``reuse`` has finished are copied from there.

    Raises ConfigError for a study that cannot be meant, is not the one that ``out`` holds, or does not fit the
    launcher; StoppedError after a signal.
    """
    directory = StudyDirectory(out.absolute())
    runs = expand(study, directory.path)
    check_directory(directory, study, runs)
    _logger.info("%s", check_equal(study, runs))
    chosen = _launcher(launcher, study, directory, runs, workers, runs_per_device, plugins)
    write_study(directory, study, runs)
    take_over_finished(runs, directory, reuse)
    view = LiveView(study.name, len(runs), directory.status)
    try:
        return conduct(runs, directory, chosen, view, retry_failed=retry_failed)
    finally:
        view.close()


def _launcher(
    name: LauncherName,
    study: StudySpec,
    directory: StudyDirectory,
    runs: Sequence[PlannedRun],
    workers: int | None,
    runs_per_device: int,
    plugins: Sequence[str],
) -> Launcher:
    """The launcher called ``name``. Imported here, since each needs what the others do without."""
    if name != "local" and workers is not None:
        raise ConfigError(f"--workers is for --launcher local; {name} has no workers: leave it out, or choose local")
    if name == "local":
        from mtl.studies.launchers.local import LocalLauncher, places_for

        return LocalLauncher(places_for(runs, workers, runs_per_device), plugins)
    if name == "slurm":
        from mtl.studies.launchers.slurm import SlurmLauncher

        return SlurmLauncher(directory.jobs, study.slurm, plugins)
    from mtl.studies.launchers.inline import InlineLauncher

    return InlineLauncher(plugins)
