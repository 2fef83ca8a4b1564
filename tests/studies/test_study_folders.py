"""A study's own folders name its arms, and its committed comparison is what the files beside it give."""

from pathlib import Path

import pytest
from run_directories import write_run

from mtl import api
from mtl.studies.find import find_runs
from mtl.studies.scored_arms import scored_arms


def test_runs_with_a_hash_in_their_folder_are_arms_by_name(tmp_path: Path) -> None:
    for name in ("even", "skewed"):
        for seed in (1, 2):
            write_run(tmp_path / "runs" / name / f"seed-{seed}-0123abc{seed}", name[0], seed)
    labels = {arm.label for arm in scored_arms(find_runs([tmp_path / "runs"]))}
    assert labels == {"even", "skewed"}


@pytest.mark.parametrize("study", ["mini_sampling"])
def test_a_committed_comparison_is_made_from_the_runs_beside_it(repository: Path, study: str) -> None:
    place = repository / "results" / study
    found = api.table(place / "runs", baseline="proportional", primary=("t5", "mini"), layout="md")
    assert found == (place / "comparison.md").read_text(encoding="utf-8")
