"""A fine-tuning that starts from weights chosen on dev says so, though it selects nothing itself."""

from pathlib import Path

import pytest

from tests.integration.tiny_runs import TASKS, run_tiny


@pytest.mark.parametrize(("selection", "start", "expected"), [
    ("dev", "selected", ("dev", 5)),
    ("dev", "task_best", ("dev", 5)),
    ("dev", "last", ("last", 1)),
    ("holdout", "selected", ("last", 1)),
])  # fmt: skip
def test_the_record_of_the_fine_tuning(tmp_path: Path, selection: str, start: str, expected: tuple[str, int]) -> None:
    result = run_tiny(
        tmp_path / "run",
        "stages=[joint,finetune]",
        f"joint.selection.on={selection}",
        "joint.evaluation.every=2",
        f"finetune_from={start}",
    )
    for task in TASKS[:2]:
        joint, tuned = (result.stages[stage].tasks[task] for stage in ("joint", "finetune"))
        assert (joint.selected_on, joint.looks) == (selection, 4)
        assert (tuned.selected_on, tuned.looks) == expected
