"""Exact epochs: the items of all tasks, each once, merged so that every task is spread evenly over the epoch."""

import numpy as np

from mtl.random_streams import generator
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.samplers import IntArray


def merged_slice(start: int, stop: int, counts: IntArray, seed: int, epoch: int) -> tuple[IntArray, IntArray]:
    """Places ``start`` to ``stop`` of the epoch's merged order: (task, item within the task), each (stop - start,).

    Item i of a task with n items stands at ``(i + offset) / n``, with one random offset in [0, 1) a task and epoch, so
    any place is found by bisection, without the items before it.
    """
    offsets = generator(seed, "exact epoch", epoch).random(counts.size)
    low = _largest_cut_with_at_most(start, counts, offsets)
    high = _smallest_cut_with_at_least(stop, counts, offsets)
    first, last = _items_before(low, counts, offsets), _items_before(high, counts, offsets)
    sizes = last - first
    tasks = np.repeat(np.arange(counts.size, dtype=np.int64), sizes)
    items = np.arange(sizes.sum(), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)
    order = np.lexsort((tasks, (items + offsets[tasks]) / counts[tasks]))
    chosen = order[start - first.sum() : stop - first.sum()]
    return tasks[chosen], items[chosen]


def _items_before(cut: float, counts: IntArray, offsets: FloatArray) -> IntArray:
    return np.clip(np.ceil(counts * cut - offsets), 0, counts).astype(np.int64)


def _largest_cut_with_at_most(places: int, counts: IntArray, offsets: FloatArray) -> float:
    low, high = 0.0, 2.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if _items_before(middle, counts, offsets).sum() <= places:
            low = middle
        else:
            high = middle
    return low


def _smallest_cut_with_at_least(places: int, counts: IntArray, offsets: FloatArray) -> float:
    low, high = 0.0, 2.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if _items_before(middle, counts, offsets).sum() >= places:
            high = middle
        else:
            low = middle
    return high
