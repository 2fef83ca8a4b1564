"""A study's directory: what a second start may have changed, and who is at which run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from run_directories import write_run
from test_expand import TINY, study

from mtl.errors import ConfigError
from mtl.runtime.processes import search_path
from mtl.studies.additions import Addition, read_additions
from mtl.studies.expand import expand
from mtl.studies.opened import open_study
from mtl.studies.spec import StudySpec, read_study
from mtl.studies.study_files import Claims, StudyDirectory, check_directory, write_study

ARMS = {"plain": [], "even": ["sampling=uniform"]}
PROMISED: dict[str, Any] = {
    "arms": ARMS,
    "baseline": "plain",
    "primary": {"arm": "even", "score": "mini"},
    "equal": "updates",
}


def start(out: Path, made: StudySpec) -> None:
    """What a start does before it runs anything."""
    directory = StudyDirectory(out)
    runs = expand(made, out)
    check_directory(directory, made, runs)
    write_study(directory, made, runs)


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_the_same_study_starts_again_and_changes_nothing(tmp_path: Path) -> None:
    start(tmp_path, study(**PROMISED))
    before = files(tmp_path)
    assert sorted(before) == [
        "configs/even/seed-1.yaml",
        "configs/even/seed-2.yaml",
        "configs/plain/seed-1.yaml",
        "configs/plain/seed-2.yaml",
        "study.yaml",
    ]
    start(tmp_path, study(**PROMISED))
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds": "3"},
        {"seeds": ["7", "2", "1"]},
        {"arms": {"first": ["sampling=proportional"], **ARMS}},
        {"arms": {**ARMS, "same": ["sampling.kind=uniform"]}},
        {"overrides": [*TINY, "logging.every=3", "training.threads=2"]},
        {"slurm": {"partition": "gpu"}},
    ],
)
def test_arms_seeds_and_what_changes_no_result_may_be_added(changes: dict[str, Any], tmp_path: Path) -> None:
    start(tmp_path, study(**PROMISED))
    changed = study(**{**PROMISED, **changes})
    start(tmp_path, changed)
    after = files(tmp_path)
    assert read_study(tmp_path / "study.yaml") == changed
    start(tmp_path, changed)
    assert files(tmp_path) == after


def test_what_is_added_after_runs_were_scored_is_told(tmp_path: Path) -> None:
    parts = {key: value for key, value in PROMISED.items() if key not in ("primary", "equal")}
    start(tmp_path, study(**parts))
    start(tmp_path, study(**{**parts, "seeds": "3"}))
    assert read_additions(tmp_path / "additions.json") == (), "nothing had been scored"
    for run in expand(study(**{**parts, "seeds": "3"}), tmp_path):
        write_run(run.directory, run.arms[0][0], run.seed)
    more = {**parts, "seeds": "5", "arms": {**ARMS, "third": ["sampling=proportional"]}}
    for _ in range(2):
        start(tmp_path, study(**more))
    assert read_additions(tmp_path / "additions.json") == (Addition(seeds=(4, 5), arms=("third",), complete=6),)
    assert "added when 6 runs were complete: seed 4, 5 and arm third; " in "\n".join(open_study(tmp_path).notes())


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"question": "another?"}, "question: q -> another?"),
        ({"equal": "none"}, "equal: updates -> none"),
        ({"primary": {"arm": "even", "score": "mini/similarity"}}, "primary: {'arm': 'even'"),
        ({"baseline": None, "primary": None}, "baseline: plain -> None"),
        (
            {"arms": {"plain": [], "even": ["sampling=proportional"]}},
            "arm even: sampling.kind: uniform -> proportional",
        ),
        (
            {"overrides": [*TINY, "optimizer.learning_rate=1e-4"]},
            "arm plain: optimizer.learning_rate: 0.0015 -> 0.0001",
        ),
        (
            {"arms": {"plain": [], "uniform": ["sampling=uniform"]}, "primary": None, "baseline": None},
            "arm even is gone",
        ),
        ({"seeds": ["1"]}, "seed 2 is gone"),
        ({"arms": {"before": ["sampling=uniform"], **ARMS}}, "arm even: its run would lie in before/"),
    ],
)
def test_any_other_change_is_refused_by_name_and_writes_nothing(
    changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    start(tmp_path, study(**PROMISED))
    before = files(tmp_path)
    with pytest.raises(ConfigError, match="holds another study") as caught:
        start(tmp_path, study(**{**PROMISED, **changes}))
    assert named in str(caught.value)
    assert files(tmp_path) == before


def test_a_recipe_that_changed_under_a_study_is_seen(tmp_path: Path) -> None:
    recipe, out = tmp_path / "recipe.yaml", tmp_path / "out"
    recipe.write_text("optimizer: {learning_rate: 1e-3}")
    start(out, study(base=["quickstart", str(recipe)]))
    recipe.write_text("optimizer: {learning_rate: 2e-3}")
    with pytest.raises(ConfigError, match=r"arm plain: optimizer.learning_rate: 0.001 -> 0.002"):
        start(out, study(base=["quickstart", str(recipe)]))


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="is not empty and holds no study"):
        start(tmp_path, study())
    assert list(files(tmp_path)) == ["thesis.tex"]


def test_a_start_that_broke_off_is_made_good(tmp_path: Path) -> None:
    start(tmp_path, study(**PROMISED))
    whole = files(tmp_path)
    for path in tmp_path.glob("configs/*/seed-2.yaml"):
        path.unlink()
    (tmp_path / ".study.yaml.1.abcd.tmp").write_text("half")
    start(tmp_path, study(**PROMISED))
    assert {name: text for name, text in files(tmp_path).items() if not name.startswith(".")} == whole
    (tmp_path / "study.yaml").unlink()
    with pytest.raises(ConfigError, match="holds no study"):
        start(tmp_path, study(**PROMISED))


def test_a_claim_lasts_as_long_as_its_holder(tmp_path: Path) -> None:
    directory = StudyDirectory(tmp_path)
    (run, other) = expand(study(), tmp_path)
    code = (
        "import sys, time\n"
        "from test_study_files import *\n"
        f"run = expand(study(), Path({str(tmp_path)!r}))[0]\n"
        f"print(Claims(StudyDirectory(Path({str(tmp_path)!r}))).take(run), flush=True)\n"
        "time.sleep(60)"
    )
    here = {"cwd": Path(__file__).parent, "env": os.environ | {"PYTHONPATH": search_path()}}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, **here) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        claims = Claims(directory)
        assert not claims.take(run)
        assert claims.take(other)
        process.kill()
    assert claims.take(run)
    assert not Claims(directory).take(run)
    claims.release(run)
    assert Claims(directory).take(run)
