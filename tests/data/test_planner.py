"""From a stage's settings to its updates: how many there are, and what settings do not go together."""

import numpy as np
import pytest
from planned_streams import SIZES, made_up_streams

from mtl.config.run import StageSettings
from mtl.config.sampling import ExactEpochSampling, TemperatureSampling
from mtl.config.training import TrainingSettings
from mtl.data.drawn_plan import DrawnPlanner
from mtl.data.planner import make_planner, updates_of
from mtl.errors import ConfigError


def _stage(exact: bool = False, **training: object) -> StageSettings:
    sampling = ExactEpochSampling() if exact else TemperatureSampling(temperature=2.0)
    return StageSettings(sampling=sampling, training=TrainingSettings.model_validate(training))


@pytest.mark.parametrize(
    ("epochs", "units", "rows", "updates"),
    [
        (1, 96, 32, 3),
        (1, 97, 32, 4),
        (2.5, 100, 32, 8),
        (0.1, 30, 3, 1),
        # 0.1 * 3 * 10 is a little more than 3 in floating point: that is no fourth update.
        (0.1 * 3, 10, 1, 3),
        (0.001, 10, 32, 1),
        (3, 392702, 32, 36816),
    ],
)
def test_epochs_become_updates(epochs: float, units: int, rows: int, updates: int) -> None:
    assert updates_of(_stage(epochs=epochs, rows_per_update=rows), units) == updates


def test_set_updates_are_taken_as_they_are() -> None:
    assert updates_of(_stage(updates=17, rows_per_update=32), 10**6) == 17


def test_units_are_rows_or_tokens() -> None:
    streams = made_up_streams()
    in_rows = make_planner(_stage(epochs=2, rows_per_update=32), 1, streams, SIZES)
    in_tokens = make_planner(_stage(epochs=2, tokens_per_update=500), 1, streams, SIZES)
    assert in_rows.total == -(-2 * 840 // 32)
    assert in_tokens.total == -(-2 * sum(int(stream.lengths.sum()) for stream in streams) // 500)


def test_shares_follow_the_sizes_given_not_the_rows_there_are() -> None:
    planner = make_planner(
        _stage(updates=5, rows_per_update=32), 1, made_up_streams(), {"glue/rte": 4, "glue/mnli": 4, "glue/cola": 16}
    )
    assert isinstance(planner, DrawnPlanner)
    np.testing.assert_allclose(planner.sampler.probabilities(0, 5), [0.25, 0.25, 0.5])


def test_settings_reach_the_planner() -> None:
    planner = make_planner(_stage(updates=5, tokens_per_update=300, tasks_per_update=2), 7, made_up_streams(), SIZES)
    assert isinstance(planner, DrawnPlanner)
    assert (planner.seed, planner.total) == (7, 5)
    assert (planner.size.rows, planner.size.tokens, planner.size.groups) == (None, 300, 2)


def test_more_tasks_than_rows_in_an_update_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.tasks_per_update is 5, more than the 4 rows"):
        make_planner(_stage(updates=5, rows_per_update=4, tasks_per_update=5), 1, made_up_streams(), SIZES)


@pytest.mark.parametrize("training", [{"tokens_per_update": 100}, {"rows_per_update": 8, "tasks_per_update": 2}])
def test_exact_epochs_need_rows_and_mixed_or_single_task_updates(training: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"set training\.rows_per_update, and training\.tasks_per_update to any"):
        make_planner(_stage(exact=True, epochs=1, **training), 1, made_up_streams(), SIZES)
