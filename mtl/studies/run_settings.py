"""The settings that a run was made with, from what lies in its directory or above it."""

from functools import cache
from pathlib import Path

from mtl.config.load import load_config
from mtl.config.run import RunConfig
from mtl.studies.expand import expand
from mtl.studies.find import FoundRun
from mtl.studies.spec import read_study


def settings_of(run: FoundRun) -> RunConfig | None:
    """The settings in the run's ``config.yaml``, else those that ``study.yaml`` gives its arm and seed; None without.

    A run of a study lies in ``<study>/runs/<arm>/seed-<n>-<hash>``. ConfigError where one of these files is not valid.
    """
    if run.directory.config.is_file():
        return load_config(run.directory.config)
    place = run.directory.path.absolute()
    study = place.parent.parent.parent / "study.yaml"
    return _planned(study).get((place.parent.name, run.result.seed)) if study.is_file() else None


@cache
def _planned(study: Path) -> dict[tuple[str, int], RunConfig]:
    runs = expand(read_study(study), study.parent)
    return {(run.directory.parent.name, run.seed): run.config for run in runs}
