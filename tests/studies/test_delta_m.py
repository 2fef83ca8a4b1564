import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.studies.statistics.best_of_trials import expected_best
from mtl.studies.statistics.delta_m import improvement

BASELINE = {"glue/rte": {"accuracy": 60.0}, "glue/mrpc": {"accuracy": 80.0, "f1": 88.0}}


def test_metrics_are_averaged_within_a_task_first() -> None:
    found = improvement({"glue/rte": {"accuracy": 66.0}, "glue/mrpc": {"accuracy": 76.0, "f1": 88.0}}, BASELINE)
    # +10% and the mean of -5% and 0%.
    assert found.delta_m == pytest.approx((10 - 2.5) / 2)
    assert found.mean_points == pytest.approx((6 - 2) / 2)
    assert found.mean_size == pytest.approx((6 + 2) / 2)
    assert found.improved == 0.5
    assert (found.worst_task, found.worst_points) == ("glue/mrpc", -2.0)


def test_a_low_baseline_withholds_it_and_says_why() -> None:
    low = {"glue/cola": {"matthews": 9.9}, "glue/rte": {"accuracy": 60.0}}
    found = improvement({"glue/cola": {"matthews": 12.0}, "glue/rte": {"accuracy": 61.0}}, low)
    assert found.delta_m is None
    assert found.withheld == "the baseline is under 10: glue/cola matthews 9.9"
    assert found.mean_points == pytest.approx(1.55)
    low["glue/cola"]["matthews"] = 10.0
    assert improvement(low, low).delta_m == 0.0


@pytest.mark.parametrize("scores", [{}, {"glue/rte": {"accuracy": 1.0}}, {**BASELINE, "glue/mrpc": {"f1": 1.0}}])
def test_other_tasks_or_metrics_are_refused(scores: dict[str, dict[str, float]]) -> None:
    with pytest.raises(ValueError, match="same tasks and metrics"):
        improvement(scores, BASELINE)


def test_expected_best_by_hand() -> None:
    # Of two trials 1 and 3: one drawn gives 2; two drawn give 3 unless both are 1.
    assert expected_best([3.0, 1.0]) == pytest.approx([2.0, 2.5])
    assert expected_best([5.0]) == pytest.approx([5.0])
    with pytest.raises(ValueError, match="no trials"):
        expected_best([])


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12))
def test_more_trials_are_never_worse_and_never_better_than_the_best(scores: list[float]) -> None:
    found = expected_best(scores)
    assert found[0] == pytest.approx(np.mean(scores), abs=1e-9)
    assert (np.diff(found) >= -1e-9).all()
    assert found[-1] <= max(scores) + 1e-9
