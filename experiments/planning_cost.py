"""What does planning an update cost as tasks and rows grow? Seconds of an update, and the most memory, by size.

    python experiments/planning_cost.py [--out results/speed/planning.json]

Rows are made up and take no memory, so that only what planning itself makes is seen. The draw of an update looks at the
tasks (a share for each), never at the rows.
"""

import argparse
import json
import statistics
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from mtl.config.run import StageSettings
from mtl.config.sampling import TemperatureSampling
from mtl.config.training import TrainingSettings
from mtl.data.planner import make_planner
from mtl.data.streams import TaskStream

SIZES = ((9, 10**3), (9, 10**8), (1000, 10**3), (1000, 10**8))
UPDATES, WARMUP, ROWS = 120, 20, 64


def main() -> None:
    """Plan the same number of updates at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/speed/planning.json"))
    arguments = parser.parse_args()
    found = [measure(tasks, rows) for tasks, rows in SIZES]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"rows_per_update": ROWS, "updates": UPDATES, "sizes": found}, indent=1) + "\n")
    for each in found:
        print(
            f"{each['tasks']:>6,} tasks of {each['rows']:>13,} rows: {each['median_seconds'] * 1e3:.3f} ms an update, "
            f"{each['peak_bytes'] / 2**20:.2f} MiB"
        )


def measure(tasks: int, rows: int) -> dict[str, Any]:
    """The median time of an update, and in a second pass, which tracing slows down, the most memory."""
    planner, times = planner_of(tasks, rows), []
    for step in range(UPDATES):
        began = time.perf_counter()
        planner.plan(step)
        times.append(time.perf_counter() - began)
    tracemalloc.start()
    again = planner_of(tasks, rows)
    for step in range(UPDATES):
        again.plan(step)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    median = statistics.median(times[WARMUP:])
    return {"tasks": tasks, "rows": rows, "median_seconds": median, "peak_bytes": peak}


def planner_of(tasks: int, rows: int) -> Any:
    """A planner over streams that take no memory."""
    length = np.broadcast_to(np.int64(40), (rows,))
    streams = [TaskStream(f"many/task{number}", 1, length, length) for number in range(tasks)]
    training = TrainingSettings(updates=UPDATES, rows_per_update=ROWS)
    settings = StageSettings(training=training, sampling=TemperatureSampling(temperature=2.0))
    return make_planner(settings, 1, streams, {stream.task: stream.size for stream in streams})


if __name__ == "__main__":
    main()
