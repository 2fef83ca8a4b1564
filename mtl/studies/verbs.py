"""What is done with finished runs: tables, pictures, data frames, comparisons. Loads what is needed when called."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mtl.config.run import Stage
from mtl.errors import ConfigError

if TYPE_CHECKING:
    import pandas

    from mtl.studies.comparable import Kind
    from mtl.studies.compare import Comparison
    from mtl.studies.find import FoundRun
    from mtl.studies.study_table import StudyTable
    from mtl.studies.table_layout import TableLayout

Paths = str | Path | Sequence[str | Path]


def table(
    paths: Paths,
    *,
    layout: Literal["text", "md", "tex", "csv"] = "text",
    baseline: str | None = None,
    primary: tuple[str, str] | None = None,
    allow_different: "Sequence[Kind]" = (),
    shown: "TableLayout | None" = None,
) -> str:
    """The scores of runs, those that differ in their seed only taken together; a path may hold runs at any depth.

    Without ``baseline`` a block for each arm; with it all arms side by side and tested against that one. ``primary``
    (arm, score) is the one comparison that was named before; ``allow_different`` what the arms may differ in. The
    directory of a study brings its own baseline and primary comparison. ``shown`` chooses and names what is shown.
    """
    from mtl.studies.layout import lay_out
    from mtl.studies.study_layout import lay_out_study
    from mtl.studies.table import arm_tables

    found = _compared(paths, baseline, primary, allow_different)
    if isinstance(found, list):
        return lay_out(arm_tables([run.result for run in found]), layout, shown)
    return lay_out_study(found, layout, shown)


def _compared(
    paths: Paths, baseline: str | None, primary: tuple[str, str] | None, allow_different: "Sequence[Kind]"
) -> "StudyTable | list[FoundRun]":
    """The table that the arguments mean, or the runs alone where nothing names a baseline."""
    from mtl.studies.find import find_runs
    from mtl.studies.opened import is_study, open_study
    from mtl.studies.scored_arms import scored_arms
    from mtl.studies.study_table import Primary, study_table

    listed = _listed(paths)
    if is_study(listed):
        study = open_study(listed[0])
        if primary is not None:
            raise ConfigError(
                f"the study {study.spec.name} named its primary comparison, or none, before it ran; "
                f"leave --primary out, or name {study.path / 'runs'} instead"
            )
        arms = study.scored()
        named = study.comparison(arms, baseline)
        if named is not None:
            by = None if named.arm is None or named.score is None else Primary(named.arm, named.score)
            return study_table(arms, named.baseline, primary=by, allowed=allow_different)
        found = study.results()
    else:
        found = find_runs(listed)
        if baseline is not None:
            by = None if primary is None else Primary(*primary)
            return study_table(scored_arms(found), baseline, primary=by, allowed=allow_different)
    if primary is not None or allow_different:
        raise ConfigError("a primary comparison and allowed differences need a baseline; name an arm")
    return found


def plot(
    picture: str,
    paths: Paths,
    out: str | Path,
    *,
    baseline: str,
    primary: tuple[str, str] | None = None,
    allow_different: "Sequence[Kind]" = (),
) -> list[Path]:
    """Draw ``picture`` (``forest``, ``cost``, ``sweep``) of runs into ``out``; the paths of its files, CSV first.

    The other arguments are as of :func:`table`.
    """
    from mtl.studies.find import find_runs
    from mtl.studies.pictures.draw import draw_picture
    from mtl.studies.scored_arms import scored_arms
    from mtl.studies.study_table import Primary, study_table

    named = None if primary is None else Primary(*primary)
    compared = study_table(scored_arms(find_runs(_listed(paths))), baseline, primary=named, allowed=allow_different)
    return draw_picture(picture, compared, Path(out))


def report(study: str | Path, out: str | Path | None = None, *, allow_different: "Sequence[Kind]" = ()) -> Path:
    """Write one HTML page that tells what a study asked, found and cost, as far as it has got; the path of the page.

    It needs nothing else, neither network nor scripts; equal files give equal bytes. ``out`` is by default
    ``report.html`` in the study's directory. ConfigError where ``study`` is not the directory of one.
    """
    from mtl.studies.report.page import write_report

    return write_report(Path(study), None if out is None else Path(out), allowed=allow_different)


def results(paths: Paths) -> "pandas.DataFrame":
    """Every score of the runs, one row for each arm, stage, task, split, metric and seed; paths as in ``table``."""
    import pandas

    from mtl.studies.find import find_runs
    from mtl.studies.score_rows import COLUMNS, score_rows

    return pandas.DataFrame(score_rows(find_runs(_listed(paths))), columns=list(COLUMNS))


def compare(
    first: str | Path,
    second: str | Path,
    *,
    stage: Stage | None = None,
    second_stage: Stage | None = None,
    tasks: Sequence[str] = (),
    split: str | None = None,
    flips: int = 5,
) -> "Comparison":
    """Two runs task by task: configs, scores, a paired test, and at most ``flips`` examples of each kind that flipped.

    ``stage`` is by default the joint one, else another that both have; ``second_stage`` is of the second run, where it
    is to be another, so that two stages of one run can be compared as well.
    """
    from mtl.studies.compare import compare_runs

    return compare_runs(
        Path(first), Path(second), stage=stage, second_stage=second_stage, tasks=tasks, split=split, flips=flips
    )


def _listed(paths: Paths) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
