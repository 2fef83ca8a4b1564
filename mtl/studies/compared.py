"""What is compared with what: as a study says itself, or as arguments say of any runs."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mtl.errors import ConfigError
from mtl.studies.comparable import Kind
from mtl.studies.find import FoundRun, find_runs
from mtl.studies.folds import pooled_folds
from mtl.studies.opened import is_study, open_study
from mtl.studies.scored_arms import Arm, scored_arms
from mtl.studies.study_table import Primary, StudyTable, study_table

_logger = logging.getLogger("mtl")


@dataclass(frozen=True)
class Compared:
    """Runs, and the table of their arms where something names a baseline."""

    runs: tuple[FoundRun, ...]
    table: StudyTable | None

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms of the runs."""
        return scored_arms(self.runs) if self.table is None else self.table.arms


def compared(
    paths: Sequence[Path],
    baseline: str | None = None,
    primary: tuple[str, str] | None = None,
    allowed: Collection[Kind] = (),
) -> Compared:
    """The runs at ``paths``; the directory of one study brings its own baseline and primary comparison.

    ConfigError where a study's own comparison is to be replaced, or one is named without a baseline.
    """
    if is_study(paths):
        return _of_study(paths[0], baseline, primary, allowed)
    runs = pooled_folds(find_runs(paths))
    if baseline is None:
        if primary is not None:
            raise ConfigError("a primary comparison needs a baseline; name an arm")
        return Compared(tuple(runs), None)
    named = None if primary is None else Primary(*primary)
    return Compared(tuple(runs), study_table(scored_arms(runs), baseline, primary=named, allowed=allowed))


def _of_study(path: Path, baseline: str | None, primary: tuple[str, str] | None, allowed: Collection[Kind]) -> Compared:
    study = open_study(path)
    arms = study.scored()
    named = study.comparison(arms, baseline, primary)
    if named is None:
        # Blocks of single arms have no place for what holds for all of them.
        for note in study.notes():
            _logger.warning("%s: %s", path, note)
        return Compared(tuple(study.results()), None)
    by = None if named.arm is None or named.score is None else Primary(named.arm, named.score)
    table = study_table(arms, named.baseline, primary=by, allowed=allowed)
    return Compared(tuple(study.results()), replace(table, notes=(*study.notes(), *table.notes)))
