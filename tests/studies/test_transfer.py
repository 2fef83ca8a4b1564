from pathlib import Path
from statistics import fmean

import pytest
from run_directories import write_run

from mtl.errors import ConfigError
from mtl.studies.find import find_runs
from mtl.studies.paired_tests import holm
from mtl.studies.pictures.picture import Source
from mtl.studies.pictures.transfer import TransferCell, transfer, transfer_cells
from mtl.studies.scored_arms import Arm, scored_arms

TASKS = {"c": "glue/cola", "r": "glue/rte", "s": "glue/stsb"}
GAINS = {"cr": 0.9, "cs": 0.0}


def pairwise(path: Path, seeds: int = 3, gains: dict[str, float] = GAINS) -> tuple[Arm, ...]:
    """Three tasks alone, and the pairs of ``gains``, named by letters."""
    for seed in range(1, seeds + 1):
        for letter, task in TASKS.items():
            write_run(path / letter / f"seed-{seed}", letter, seed, names=[task], stage="single")
        for number, (pair, gain) in enumerate(gains.items()):
            write_run(path / pair / f"seed-{seed}", "xyz"[number], seed, gain=gain, names=[TASKS[x] for x in pair])
    return scored_arms(find_runs([path]))


def by_place(cells: list[TransferCell]) -> dict[tuple[str, str], TransferCell]:
    return {(cell.auxiliary.split("/")[1], cell.target.split("/")[1]): cell for cell in cells}


def test_each_target_is_compared_with_itself_alone(tmp_path: Path) -> None:
    arms = pairwise(tmp_path)
    cells = by_place(transfer_cells(arms))
    scores = {
        arm.label: [arm.record(run).tasks["glue/rte"].primary for run in arm.runs]
        for arm in arms
        if "glue/rte" in arm.tasks
    }
    helped = cells["cola", "rte"]
    assert helped.alone == pytest.approx(fmean(scores["r"]))
    assert helped.difference == pytest.approx(fmean(scores["cr"]) - fmean(scores["r"]))
    assert helped.difference > 5
    assert helped.distinguishable
    assert not cells["stsb", "cola"].distinguishable


def test_holm_is_over_the_whole_matrix(tmp_path: Path) -> None:
    arms = pairwise(tmp_path)
    tested = [cell for cell in transfer_cells(arms) if cell.p_adjusted is not None]
    assert len(tested) == 4
    alone = by_place(transfer_cells([arm for arm in arms if arm.label != "cs"]))
    # Of two tests and of four: the smallest is doubled, and so doubled once more.
    smallest = min(tested, key=lambda cell: cell.p_adjusted or 0)
    again = alone[smallest.auxiliary.split("/")[1], smallest.target.split("/")[1]]
    assert smallest.p_adjusted == pytest.approx(2 * (again.p_adjusted or 0))
    assert holm([0.01, 0.02]) == [0.02, 0.02]


def test_a_pair_that_was_not_trained_is_named(tmp_path: Path) -> None:
    drawing = transfer(Source(pairwise(tmp_path)))
    cell = by_place(list(drawing.points))["stsb", "rte"]
    assert (cell.together, cell.difference, cell.untested) == (None, None, None)
    assert cell.alone is not None
    assert set(drawing.missing) == {"no run of glue/rte with glue/stsb", "no run of glue/stsb with glue/rte"}


def test_one_run_is_not_tested(tmp_path: Path) -> None:
    drawing = transfer(Source(pairwise(tmp_path, seeds=1)))
    cell = by_place(list(drawing.points))["cola", "rte"]
    assert cell.difference is not None
    assert not cell.distinguishable
    assert any(line.startswith("no test: ") and "one run" in line for line in drawing.missing)


def test_without_pairs_there_is_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs arms that train two tasks jointly"):
        transfer_cells(pairwise(tmp_path, gains={}))


def test_a_place_is_for_one_arm(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cr and rc both train glue/cola with glue/rte"):
        transfer_cells(pairwise(tmp_path, gains={"cr": 0.0, "rc": 0.5}))
