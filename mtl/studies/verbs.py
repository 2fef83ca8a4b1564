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
    from mtl.studies.pictures.draw import Drawn
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
    from mtl.studies.compared import compared
    from mtl.studies.layout import lay_out
    from mtl.studies.study_layout import lay_out_study
    from mtl.studies.table import arm_tables

    found = compared(_listed(paths), baseline, primary, allow_different)
    if found.table is not None:
        return lay_out_study(found.table, layout, shown)
    if allow_different:
        raise ConfigError("allowed differences need a baseline; name an arm")
    return lay_out(arm_tables([run.result for run in found.runs]), layout, shown)


def plot(
    picture: str,
    paths: Paths,
    out: str | Path,
    *,
    baseline: str | None = None,
    primary: tuple[str, str] | None = None,
    allow_different: "Sequence[Kind]" = (),
) -> "Drawn":
    """Draw ``picture``, one of ``mtl.studies.pictures.PICTURES``, of runs into ``out``.

    What is returned has the files, the CSV first, and a caption. The other arguments are as of :func:`table`; pictures
    that compare no arms with a baseline need none.
    """
    from mtl.studies.compared import compared
    from mtl.studies.pictures.draw import draw_picture
    from mtl.studies.pictures.picture import Source
    from mtl.studies.pictures.registry import find_picture

    find_picture(picture)
    found = compared(_listed(paths), baseline, primary, allow_different)
    return draw_picture(picture, Source(found.arms, found.table, allow_different), Path(out))


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
    from mtl.studies.folds import pooled_folds
    from mtl.studies.score_rows import COLUMNS, score_rows

    found = pooled_folds(find_runs(_listed(paths)))
    return pandas.DataFrame(score_rows(found), columns=list(COLUMNS))


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
