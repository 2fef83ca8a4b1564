"""Fixed parts of a task's rows: the holdout that selection reads, folds, and smaller training sets that nest."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtl.errors import ConfigError
from mtl.random_streams import stream_key
from mtl.sampling.permutation import mix64
from mtl.sampling.samplers import IntArray

HOLDOUT_SHARE = 0.1
HOLDOUT_ROWS = 2000
FOLDED_BELOW = 10_000
"""Rows of train and dev together from which on a task is never divided into folds."""


@dataclass(frozen=True)
class Portion:
    """How much of a split is used: at most ``rows``, or that ``fraction`` of it; all where neither is set."""

    rows: int | None = None
    fraction: float | None = None

    def of(self, rows: int) -> int:
        """How many of ``rows`` rows: never more for a smaller portion, and of a fraction at least one."""
        if self.fraction is not None:
            return min(rows, max(1, round(self.fraction * rows)))
        return rows if self.rows is None else min(rows, self.rows)


WHOLE = Portion()


def split_holdout(task: str, text_keys: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Rows to train on and rows to hold out, both sorted; about min(10%, 2,000) rows are held out.

    ``text_keys`` (N, texts): rows linked by a shared text, in whichever column, stay together. Groups are taken in the
    order of a hash of the task's name and the row, those passed over that would exceed the size: the same in every run.
    Where chains of shared texts join so many rows that not even half the size can be held out, as in a generated task
    whose sentences recur, only rows that are alike in all texts stay together.
    """
    wanted = min(int(HOLDOUT_SHARE * len(text_keys)), HOLDOUT_ROWS)
    inside = _choose_groups(task, _linked_groups(text_keys), wanted)
    if inside.sum() < wanted / 2:
        inside = _choose_groups(task, _alike(text_keys), wanted)
    return np.flatnonzero(~inside), np.flatnonzero(inside)


def _choose_groups(task: str, groups: IntArray, wanted: int) -> npt.NDArray[np.bool_]:
    """Which rows (N,) to hold out: whole groups, ``wanted`` rows or as few less as their sizes allow."""
    sizes = np.bincount(groups)
    # A group stands where its first row's hash puts it.
    first_rows = np.unique(groups, return_index=True)[1]
    order = np.argsort(_row_hashes("holdout", task, first_rows), kind="stable")
    held, count = [], 0
    for group in order:
        if count == wanted:
            break
        if count + sizes[group] <= wanted:
            held.append(group)
            count += sizes[group]
    return np.isin(groups, held)


def fold_numbers(task: str, text_keys: npt.NDArray[np.uint64], folds: int) -> IntArray:
    """The fold, 0 to ``folds - 1``, of each row (N,) of ``text_keys`` (N, texts).

    Rows linked by a shared text, in whichever column, are in one fold. The largest groups are dealt first, those of one
    size in the order of a hash of the task's name and their first row, each to the fold that has the fewest rows: the
    same in every run. Where chains of shared texts join so many rows that some fold would have less than half its part,
    only rows that are alike in all texts stay together. ConfigError where even then a fold would.
    """
    for groups in (_linked_groups(text_keys), _alike(text_keys)):
        numbers = _deal_groups(task, groups, folds)
        if np.bincount(numbers, minlength=folds).min() >= len(text_keys) / folds / 2:
            return numbers
    raise ConfigError(
        f"{task} has {len(text_keys)} rows of too few different texts for {folds} folds of similar size: set "
        "splits.kfold lower, or leave the task out"
    )


def _deal_groups(task: str, groups: IntArray, folds: int) -> IntArray:
    sizes = np.bincount(groups)
    first_rows = np.unique(groups, return_index=True)[1]
    numbers, filled = np.zeros(sizes.size, dtype=np.int64), np.zeros(folds, dtype=np.int64)
    for group in np.lexsort((_row_hashes("folds", task, first_rows), -sizes)):
        numbers[group] = np.argmin(filled)
        filled[numbers[group]] += sizes[group]
    return numbers[groups]


def nested_subset(task: str, rows: IntArray, count: int | None) -> IntArray:
    """At most ``count`` of ``rows``, sorted; a smaller subset is part of every larger one."""
    if count is None or count >= rows.size:
        return rows
    return np.sort(rows[np.argsort(_row_hashes("subset", task, rows), kind="stable")[:count]])


def _row_hashes(purpose: str, task: str, rows: IntArray) -> npt.NDArray[np.uint64]:
    return np.asarray(mix64(rows.astype(np.uint64) * np.uint64(2) + np.uint64(stream_key(0, purpose, task) | 1)))


def _alike(text_keys: npt.NDArray[np.uint64]) -> IntArray:
    """Group number (N,) of each row: rows are in one group where they are alike in all texts."""
    return np.unique(text_keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _linked_groups(text_keys: npt.NDArray[np.uint64]) -> IntArray:
    """Group number (N,) of each row: rows are in one group where a chain of shared texts links them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, texts = text_keys.shape
    _, text_numbers = np.unique(text_keys, return_inverse=True)
    text_numbers = text_numbers.reshape(rows, texts) + rows
    ends = text_numbers.ravel(), np.repeat(np.arange(rows), texts)
    nodes = int(text_numbers.max()) + 1
    graph = coo_array((np.ones(ends[0].size, dtype=np.int8), ends), shape=(nodes, nodes))
    labels = connected_components(graph, directed=False)[1][:rows]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
