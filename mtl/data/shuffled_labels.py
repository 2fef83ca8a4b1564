"""A control: training rows whose labels say nothing about them."""

from dataclasses import replace

import numpy as np

from mtl.data.store import TokenStore
from mtl.random_streams import generator


def with_shuffled_labels(store: TokenStore, task: str, seed: int) -> TokenStore:
    """The store with its labels in another order, drawn over all of its rows: as many of each value as before.

    The order depends on the seed, the task's name and the number of rows alone, so that smaller subsets of the rows
    have the labels that they have in larger ones.
    """
    order = generator(seed, "shuffled labels", task).permutation(store.rows)
    return replace(store, labels=np.asarray(store.labels)[order])
