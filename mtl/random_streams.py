"""Independent random streams, each named, so that no draw in one can shift another.

A run has one seed. Everything random takes its own stream, named by what it is for (``"order", "glue/rte", 3``), so
adding a task, an evaluation or a rank leaves all other draws as they were.
"""

import hashlib
import json

import numpy as np


def stream_key(seed: int, *names: str | int) -> int:
    """The 64-bit key of the stream called ``names`` under ``seed``: equal names, equal keys; others are unrelated."""
    text = json.dumps([seed, *names], separators=(",", ":"), ensure_ascii=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """A counter-based generator at the start of the stream called ``names`` under ``seed``."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *names)))
