"""Planning an update costs the same however many rows the tasks have."""

import tracemalloc

import numpy as np
import pytest

from mtl.config.run import StageSettings
from mtl.config.sampling import ExactEpochSampling, TemperatureSampling
from mtl.config.training import TrainingSettings
from mtl.data.planner import make_planner
from mtl.data.streams import TaskStream

TASKS, ROWS, UPDATES = 1000, 10**8, 100
MIB = 2**20


def streams(rows: int) -> list[TaskStream]:
    """Streams whose rows take no memory."""
    length = np.broadcast_to(np.int64(40), (rows,))
    return [TaskStream(f"many/task{number}", 1, length, length) for number in range(TASKS)]


@pytest.mark.parametrize("unit", ["rows_per_update", "tokens_per_update"])
@pytest.mark.parametrize("sampling", [TemperatureSampling(temperature=2.0), ExactEpochSampling()])
def test_nothing_of_the_size_of_the_rows_is_made(unit: str, sampling: TemperatureSampling | ExactEpochSampling) -> None:
    if unit == "tokens_per_update" and sampling.kind == "exact_epoch":
        pytest.skip("exact epochs are of rows")
    sizes = {"rows_per_update": 64} if unit == "rows_per_update" else {"tokens_per_update": 2560, "tasks_per_update": 4}
    training = TrainingSettings(updates=UPDATES, **sizes)  # type: ignore[arg-type]
    settings = StageSettings(training=training, sampling=sampling)
    many = streams(ROWS)
    for stream in many:
        # The mean over a real store's rows is read once, when the planner is made; here it is known.
        object.__setattr__(stream, "mean_length", 40.0)
    tracemalloc.start()
    try:
        planner = make_planner(settings, 1, many, {stream.task: stream.size for stream in many})
        for step in range(UPDATES):
            assert planner.plan(step).rows.size > 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
