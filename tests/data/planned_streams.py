"""Streams of made-up rows that tests of update plans share."""

from collections.abc import Mapping

import numpy as np

from mtl.data.streams import TaskStream

SIZES = {"glue/rte": 40, "glue/mnli": 640, "glue/cola": 160}


def made_up_streams(sizes: Mapping[str, int] = SIZES, *, seed: int = 1) -> list[TaskStream]:
    """Streams whose rows are not 0..n-1 and whose lengths differ between tasks (means of about 10, 20, 30 tokens)."""
    streams = []
    for number, (task, size) in enumerate(sizes.items()):
        lengths = 10 * (number + 1) + (np.arange(size) * 7919) % 11 - 5
        streams.append(TaskStream(task, seed, np.arange(size) * 2 + 1, lengths))
    return streams
