"""Exact epochs: the items of all tasks, each once, merged so that every task is spread evenly over the epoch.

Item i of a task with n items stands at ``(i + offset) / n``, with one random offset in [0, 1) a task and epoch, so any
place is found by bisection, without the items before it.
"""

from collections.abc import Callable

import numpy as np

from mtl.random_streams import generator
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray

_FINEST = 1e-12
"""Where bisection stops: coarser cuts would make longer stretches to sort, and change nothing else."""


def merged_slice(start: int, stop: int, counts: IntArray, seed: int, epoch: int) -> tuple[IntArray, IntArray]:
    """Places ``start`` to ``stop`` of the epoch's merged order: (task, item within the task), each (stop - start,).

    ``counts`` (K,) are the tasks' items in an epoch.
    """
    first, tasks, items = _window(start, stop, counts, seed, epoch)
    before = int(first.sum())
    chosen = slice(start - before, stop - before)
    return tasks[chosen], items[chosen]


def counts_before(place: int, counts: IntArray, seed: int, epoch: int) -> IntArray:
    """Items of each task (K,) in the places 0 to ``place`` of the epoch's merged order."""
    first, tasks, _ = _window(place, place, counts, seed, epoch)
    within = np.bincount(tasks[: place - int(first.sum())], minlength=counts.size)
    return (first + within).astype(np.int64)


def _window(start: int, stop: int, counts: IntArray, seed: int, epoch: int) -> tuple[IntArray, IntArray, IntArray]:
    """A stretch of the order that covers ``start`` to ``stop``: items of each task before it, its tasks, its items."""
    offsets = generator(seed, "exact epoch", epoch).random(counts.size)
    low, _ = _bisect(lambda cut: _items_before(cut, counts, offsets).sum() > start)
    _, high = _bisect(lambda cut: _items_before(cut, counts, offsets).sum() >= stop)
    first, last = _items_before(low, counts, offsets), _items_before(high, counts, offsets)
    sizes = last - first
    tasks = np.repeat(np.arange(counts.size, dtype=np.int64), sizes)
    within = np.arange(sizes.sum(), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    items = within + np.repeat(first, sizes)
    order = np.lexsort((tasks, (items + offsets[tasks]) / counts[tasks]))
    return first, tasks[order], items[order]


def _items_before(cut: float, counts: IntArray, offsets: FloatArray) -> IntArray:
    return np.clip(np.ceil(counts * cut - offsets), 0, counts).astype(np.int64)


def _bisect(beyond: Callable[[float], bool]) -> tuple[float, float]:
    """The last cut in [0, 2] that is not ``beyond`` and the first that is, as close as they have to be."""
    low, high = 0.0, 2.0
    while high - low > _FINEST:
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return low, high
