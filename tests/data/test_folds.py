"""Train and dev of a task divided into folds: every row once, no text in two, alike in every run."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.data.folds import FoldedSplits, folded_splits, is_folded
from mtl.data.part_store import joined_store, part_store
from mtl.data.store import TokenStore
from mtl.data.subsets import FOLDED_BELOW, fold_numbers
from mtl.errors import ConfigError
from mtl.tasks.registry import get

RTE = get("glue/rte")


def store(rows: int, *, texts: int = 10**6, first: int = 0) -> TokenStore:
    """Rows of one or two sequences each, every token another number, texts drawn from so many."""
    random = np.random.default_rng([rows, first])
    sequences = random.integers(1, 3, rows)
    lengths = random.integers(1, 6, int(sequences.sum()))
    total = int(lengths.sum())
    return TokenStore(
        tokens=np.arange(first, first + total, dtype=np.uint32),
        types=random.integers(0, 2, total).astype(np.uint8),
        sequence_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        example_offsets=np.concatenate([[0], np.cumsum(sequences)]).astype(np.int64),
        labels=random.integers(0, 2, rows),
        text_keys=random.integers(0, texts, (rows, 2)).astype(np.uint64),
        fingerprint=f"tokens {rows}",
        data_fingerprint=f"data {rows}",
        truncated=1,
        empty=2,
    )


def row(found: TokenStore, number: int) -> tuple[list[list[int]], list[list[int]], int, list[int]]:
    """All that a store says of a row: tokens and types by sequence, label, texts."""
    sequences = range(found.example_offsets[number], found.example_offsets[number + 1])
    parts = [slice(*found.sequence_offsets[place : place + 2]) for place in sequences]
    return (
        [found.tokens[part].tolist() for part in parts],
        [found.types[part].tolist() for part in parts],
        int(found.labels[number]),
        found.text_keys[number].tolist(),
    )


def folds_of(splits: Mapping[str, TokenStore], folds: int) -> list[FoldedSplits]:
    found = [folded_splits(RTE, splits, folds, fold) for fold in range(folds)]
    assert all(each is not None for each in found)
    return [each for each in found if each is not None]


@given(sizes=st.lists(st.integers(1, 6), min_size=80, max_size=120), folds=st.integers(2, 5), seed=st.integers(0, 99))
def test_rows_that_share_a_text_in_whichever_column_are_in_one_fold(sizes: list[int], folds: int, seed: int) -> None:
    first = np.repeat(np.arange(len(sizes)), sizes)
    second = 10_000 + np.arange(first.size)
    # Each group of an even number shares its last row's second text with the first row of the next.
    begins = np.cumsum(sizes)[:-1][::2]
    second[begins - 1] = second[begins]
    order = np.random.default_rng(seed).permutation(first.size)
    keys = np.stack([first, second], axis=1)[order].astype(np.uint64)
    numbers = fold_numbers("glue/rte", keys, folds)
    assert set(numbers.tolist()) == set(range(folds))
    by_text: dict[int, set[int]] = {}
    for texts, number in zip(keys.tolist(), numbers.tolist(), strict=True):
        for text in texts:
            by_text.setdefault(text, set()).add(number)
    assert all(len(found) == 1 for found in by_text.values())


@given(rows=st.integers(10, 3000), folds=st.integers(2, 10))
def test_folds_of_different_texts_are_of_one_size(rows: int, folds: int) -> None:
    keys = np.arange(2 * rows, dtype=np.uint64).reshape(rows, 2)
    sizes = np.bincount(fold_numbers("glue/rte", keys, folds), minlength=folds)
    assert sizes.max() - sizes.min() <= 1


@given(sizes=st.lists(st.integers(1, 12), min_size=60, max_size=200), folds=st.integers(2, 5))
def test_folds_differ_by_the_largest_group_at_most(sizes: list[int], folds: int) -> None:
    keys = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)[:, np.newaxis]
    filled = np.bincount(fold_numbers("glue/rte", keys, folds), minlength=folds)
    assert filled.max() - filled.min() <= max(sizes)


def test_one_chain_through_all_rows_is_cut_but_rows_alike_are_not() -> None:
    chain = np.array([[place // 2, 1000 + (place + 1) // 2] for place in range(200)], dtype=np.uint64)
    numbers = fold_numbers("mini/entail3", np.concatenate([chain, chain]), 4)
    assert np.array_equal(numbers[:200], numbers[200:])
    assert np.bincount(numbers).tolist() == [100] * 4


def test_too_few_texts_for_the_folds_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"glue/rte has 60 rows of too few different texts for 4 folds"):
        fold_numbers("glue/rte", np.repeat(np.arange(3, dtype=np.uint64), 20)[:, np.newaxis], 4)


def test_folds_are_the_same_in_every_run_and_of_each_task_its_own() -> None:
    keys = np.arange(600, dtype=np.uint64)[:, np.newaxis]
    first, again, other = (fold_numbers(task, keys, 3) for task in ("glue/rte", "glue/rte", "glue/cola"))
    assert np.array_equal(first, again)
    assert 0.2 < np.mean(first == other) < 0.5
    # Changed folds change every number scored on them: that has to be meant.
    assert fold_numbers("glue/rte", keys[:12], 3).tolist() == [2, 2, 0, 0, 0, 1, 1, 1, 1, 2, 2, 0]
    thirds = np.array([np.bincount(part, minlength=3) for part in np.split(first, 3)])
    assert thirds.min() > 40, "folds are no stretches of the file"


@given(rows=st.integers(1, 30), other=st.integers(1, 30), data=st.data())
def test_a_part_of_two_stores_is_its_rows(rows: int, other: int, data: st.DataObject) -> None:
    one, two = store(rows), store(other, first=10_000)
    whole = joined_store([one, two])
    assert [row(whole, place) for place in range(whole.rows)] == [
        *(row(one, place) for place in range(rows)),
        *(row(two, place) for place in range(other)),
    ]
    chosen = np.array(data.draw(st.lists(st.integers(0, rows + other - 1), unique=True)), dtype=np.int64)
    part = part_store(whole, chosen, "part")
    assert [row(part, place) for place in range(part.rows)] == [row(whole, place) for place in chosen.tolist()]
    assert part.row_ids is not None
    assert part.row_ids.tolist() == chosen.tolist()
    assert part.lengths().tolist() == whole.lengths()[chosen].tolist()


def test_the_folds_divide_train_and_dev() -> None:
    splits = {"train": store(70), "dev": store(31, first=10_000), "test": store(9, first=20_000)}
    whole = joined_store([splits["train"], splits["dev"]])
    found = folds_of(splits, 3)
    held_out = [each.dev.row_ids for each in found]
    assert np.sort(np.concatenate([rows for rows in held_out if rows is not None])).tolist() == list(range(101))
    for each in found:
        assert each.train.row_ids is not None
        assert each.dev.row_ids is not None
        assert np.intersect1d(each.train.row_ids, each.dev.row_ids).size == 0
        assert each.train.rows + each.dev.rows == 101
        assert [row(each.dev, place) for place in range(each.dev.rows)] == [row(whole, i) for i in each.dev.row_ids]
        assert (each.file_train, each.file_dev) == (splits["train"], splits["dev"])
    prints = {part.data_fingerprint for each in found for part in (each.train, each.dev)}
    assert len(prints) == 6, "what was scored tells its fold"
    assert folds_of(splits, 2)[0].dev.data_fingerprint not in prints


def test_large_tasks_and_those_with_several_dev_splits_keep_their_own() -> None:
    assert is_folded(RTE, FOLDED_BELOW - 1)
    assert not is_folded(RTE, FOLDED_BELOW)
    assert not is_folded(get("glue/mnli"), 100)
    assert not is_folded(get("glue/ax"), 100)
    large = {"train": store(FOLDED_BELOW - 50), "dev": store(50)}
    assert folded_splits(RTE, large, 5, 0) is None
