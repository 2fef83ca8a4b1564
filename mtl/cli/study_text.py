"""The words of `mtl study`: what would be run, and what became of it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from mtl import api
from mtl.studies.columns import aligned

if TYPE_CHECKING:
    from mtl.studies.conduct import Outcome
    from mtl.studies.expand import PlannedRun
    from mtl.studies.spec import StudySpec


def plan_text(study: "StudySpec", out: Path) -> str:
    """Every run of the study and how it stands in ``out``, the question, and what is held equal."""
    from mtl.studies.equal import check_equal
    from mtl.studies.run_state import state_of
    from mtl.studies.study_files import StudyDirectory, check_directory

    runs = api.study_runs(study, out)
    check_directory(StudyDirectory(out), study, runs)
    states = [state_of(run.directory) for run in runs]
    rows = [
        (", ".join(run.arms), _repetition(run), state, str(run.directory))
        for run, state in zip(runs, states, strict=True)
    ]
    arms = len({arm for run in runs for arm in run.arms})
    folds = "" if study.folds is None else f", {study.folds} folds"
    lines = [f"{study.name}: {study.question}", ""]
    lines += aligned(("arm", "seed", "state", "directory"), rows, left=(0, 2, 3))
    lines += [
        "",
        f"{len(runs)} runs ({arms} arms, {len(study.seeds)} seeds{folds}), {states.count('complete')} of them complete",
        check_equal(study, runs),
        _comparison(study),
    ]
    return "\n".join(lines) + "\n"


def _repetition(run: "PlannedRun") -> str:
    return str(run.seed) if run.fold is None else f"{run.seed}, fold {run.fold}"


def _comparison(study: "StudySpec") -> str:
    primary = study.primary
    if primary is None:
        return "no primary comparison: the study is exploratory"
    other = primary.baseline_stage or primary.stage
    return f"primary comparison: {primary.score} of {primary.arm} ({primary.stage}) against {study.baseline} ({other})"


def outcome_text(study: "StudySpec", out: Path, outcome: "Outcome") -> str:
    """How many runs are complete, each one that is not with its log, and how to see the scores."""
    total = len(outcome.complete) + len(outcome.unfinished)
    new = len(outcome.complete) - outcome.found
    lines = [f"{study.name}: {len(outcome.complete)} of {total} runs are complete, {new} of them since this start"]
    lines += [f"  {each.run.title}: {each.reason}\n    {each.log}" for each in outcome.unfinished]
    if outcome.complete:
        place = shlex.quote(str(out))
        lines.append(f"mtl table {place} prints their scores, mtl report {place} writes them on a page with pictures")
    return "\n".join(lines) + "\n"
