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

Paths = str | Path | Sequence[str | Path]


def table(
    paths: Paths,
    *,
    layout: Literal["text", "md", "tex", "csv"] = "text",
    baseline: str | None = None,
    primary: tuple[str, str] | None = None,
    allow_different: "Sequence[Kind]" = (),
) -> str:
    """The scores of runs, those that differ in their seed only taken together; a path may hold runs at any depth.

    Without ``baseline`` a block for each arm; with it all arms side by side and tested against that one. ``primary``
    (arm, score) is the one comparison that was named before; ``allow_different`` what the arms may differ in.
    """
    from mtl.studies.find import find_runs
    from mtl.studies.folds import pooled_folds
    from mtl.studies.layout import lay_out
    from mtl.studies.scored_arms import scored_arms
    from mtl.studies.study_layout import lay_out_study
    from mtl.studies.study_table import Primary, study_table
    from mtl.studies.table import arm_tables

    found = pooled_folds(find_runs(_listed(paths)))
    if baseline is None:
        if primary is not None or allow_different:
            raise ConfigError("a primary comparison and allowed differences need a baseline; name an arm")
        return lay_out(arm_tables([run.result for run in found]), layout)
    named = None if primary is None else Primary(*primary)
    return lay_out_study(study_table(scored_arms(found), baseline, primary=named, allowed=allow_different), layout)


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
    from mtl.studies.folds import pooled_folds
    from mtl.studies.pictures.draw import draw_picture
    from mtl.studies.scored_arms import scored_arms
    from mtl.studies.study_table import Primary, study_table

    named = None if primary is None else Primary(*primary)
    arms = scored_arms(pooled_folds(find_runs(_listed(paths))))
    compared = study_table(arms, baseline, primary=named, allowed=allow_different)
    return draw_picture(picture, compared, Path(out))


def results(paths: Paths) -> "pandas.DataFrame":
    """Every score of the runs, one row for each arm, stage, task, split, metric and seed; paths as in ``table``."""
    import pandas

    from mtl.studies.find import find_runs
    from mtl.studies.folds import pooled_folds
    from mtl.studies.score_rows import COLUMNS, score_rows

    found = pooled_folds(find_runs(_listed(paths)))
    return pandas.DataFrame(score_rows([run.result for run in found]), columns=list(COLUMNS))


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
