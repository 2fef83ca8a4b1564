"""Merged epochs: each item once, slices that fit together, every task spread evenly, epochs that differ."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mtl.sampling.exact_epoch import counts_before, merged_slice

COUNTS = st.lists(st.integers(min_value=1, max_value=200), min_size=1, max_size=6)


def _whole(counts: np.ndarray, epoch: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return merged_slice(0, int(counts.sum()), counts, 1, epoch)


@settings(max_examples=30)
@given(counts=COUNTS, rows=st.integers(min_value=7, max_value=64), epoch=st.integers(min_value=0, max_value=9))
def test_slices_hold_each_item_once_and_make_up_the_whole(counts: list[int], rows: int, epoch: int) -> None:
    array = np.array(counts)
    total = int(array.sum())
    slices = [merged_slice(at, min(at + rows, total), array, 1, epoch) for at in range(0, total, rows)]
    tasks = np.concatenate([task for task, _ in slices])
    items = np.concatenate([item for _, item in slices])
    seen = set(zip(tasks.tolist(), items.tolist(), strict=True))
    assert seen == {(task, item) for task, count in enumerate(counts) for item in range(count)}
    assert tasks.size == total
    whole_tasks, whole_items = _whole(array, epoch)
    np.testing.assert_array_equal(tasks, whole_tasks)
    np.testing.assert_array_equal(items, whole_items)


@given(counts=COUNTS, data=st.data())
def test_counts_before_a_place_are_those_of_the_slice(counts: list[int], data: st.DataObject) -> None:
    array = np.array(counts)
    place = data.draw(st.integers(min_value=0, max_value=int(array.sum())))
    tasks, _ = merged_slice(0, place, array, 1, 3)
    np.testing.assert_array_equal(counts_before(place, array, 1, 3), np.bincount(tasks, minlength=array.size))


@given(counts=COUNTS)
def test_items_of_a_task_come_in_order(counts: list[int]) -> None:
    tasks, items = _whole(np.array(counts))
    for task in range(len(counts)):
        np.testing.assert_array_equal(items[tasks == task], np.arange(counts[task]))


@given(counts=st.lists(st.integers(min_value=1, max_value=3000), min_size=2, max_size=6))
def test_every_tenth_holds_about_a_tenth_of_each_task(counts: list[int]) -> None:
    array = np.array(counts)
    total = int(array.sum())
    cuts = [round(total * tenth / 10) for tenth in range(11)]
    before = np.array([counts_before(cut, array, 1, 0) for cut in cuts])
    # A cut of the merged order lies within a few items of the same share of every task.
    assert np.abs(np.diff(before, axis=0) - array / 10).max() <= 2 + len(counts) / 2


def test_epochs_and_seeds_differ() -> None:
    counts = np.array([50, 70, 90])
    first, second = _whole(counts, 0)[0], _whole(counts, 1)[0]
    other_seed = merged_slice(0, 210, counts, 2, 0)[0]
    assert (first != second).any()
    assert (first != other_seed).any()


def test_a_slice_late_in_a_huge_epoch_is_found_at_once() -> None:
    counts = np.array([10**8, 10**7, 12345])
    tasks, items = merged_slice(77_000_000, 77_000_100, counts, 1, 0)
    assert tasks.size == 100
    shares = items / counts[tasks]
    assert shares.max() - shares.min() < 1e-3
    assert (np.diff(shares) >= -1e-3).all()
