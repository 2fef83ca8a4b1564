"""What a page tells of a study, gathered from its files: arms, their table as far as there is one, and what is missing.

A study may be half finished: then what can be compared is, and the rest is named.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.records import ResultRecord
from mtl.studies.comparable import Kind
from mtl.studies.opened import NamedComparison, OpenedStudy
from mtl.studies.scored_arms import Arm
from mtl.studies.study_table import Primary, ScoreRow, StudyTable, plain_rows, study_table


@dataclass(frozen=True)
class Content:
    """``arms`` are those with results. ``table`` is None where nothing can be compared, for the reason ``no_table``;
    ``no_primary`` is why the table lacks the primary comparison that the study names.
    """

    study: OpenedStudy
    arms: tuple[Arm, ...]
    table: StudyTable | None
    no_table: str | None
    no_primary: str | None

    @property
    def rows(self) -> tuple[ScoreRow, ...]:
        """The scores of tasks and suites, tested or not."""
        return self.table.rows if self.table is not None else plain_rows(self.arms)

    @property
    def headline(self) -> ScoreRow | None:
        """The score that stands for a run: the primary comparison's, else the first suite's, else the first task's."""
        rows = self.rows
        primary = self.study.spec.primary
        named = [row for row in rows if primary is not None and row.name == primary.score]
        suites = [row for row in rows if row.members is not None]
        return next(iter([*named, *suites, *rows]), None)

    @property
    def results(self) -> tuple[ResultRecord, ...]:
        """Every result, once."""
        return tuple(run.found.result for run in self.study.runs if run.found is not None)

    @property
    def configs(self) -> Mapping[str, RunConfig]:
        """The settings of each arm, of its first seed."""
        configs: dict[str, RunConfig] = {}
        for run in self.study.runs:
            for arm in run.arms:
                configs.setdefault(arm, run.config)
        return configs


def gather(study: OpenedStudy, allowed: Collection[Kind] = ()) -> Content:
    """What there is to tell of ``study``. DataError where a file of a run is damaged."""
    if study.nothing is not None:
        return Content(study, (), None, study.nothing, study.nothing)
    arms = study.scored()
    try:
        named = study.comparison(arms)
    except ConfigError as error:
        why = f"the baseline {study.spec.baseline} cannot be told: {error}"
        if not _has_results(study, study.spec.baseline):
            why = f"no run of the baseline {study.spec.baseline} has a result yet"
        return Content(study, arms, None, why, why)
    if named is None:
        return Content(study, arms, None, "the study names no baseline to compare its arms with", None)
    return _with_table(study, arms, named, allowed)


def _with_table(
    study: OpenedStudy, arms: tuple[Arm, ...], named: NamedComparison, allowed: Collection[Kind]
) -> Content:
    """The table with its primary comparison; else without, and why; else neither."""
    why: str | None = None
    if named.arm is not None and named.score is not None:
        primary = Primary(named.arm, named.score)
        if not any(f"{arm.label}:{arm.stage}" == named.arm for arm in arms):
            why = f"no run of {named.arm.partition(':')[0]} has a result yet"
        else:
            try:
                table = study_table(arms, named.baseline, primary=primary, allowed=allowed)
            except ConfigError as error:
                why = str(error)
            else:
                return Content(study, arms, table, None, None)
    try:
        return Content(study, arms, study_table(arms, named.baseline, allowed=allowed), None, why)
    except ConfigError as error:
        return Content(study, arms, None, str(error), why or (None if named.arm is None else str(error)))


def _has_results(study: OpenedStudy, arm: str | None) -> bool:
    return any(run.found is not None for run in study.runs if arm in run.arms)
