"""The order without storage: a bijection of any size, even over keys, different for each key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mtl.sampling.permutation import permuted

KEYS = st.integers(min_value=0, max_value=2**64 - 1)


def _whole(size: int, key: int) -> np.ndarray:
    return permuted(np.arange(size, dtype=np.int64), size, key)


@given(size=st.integers(min_value=1, max_value=3000), key=KEYS)
def test_every_row_comes_once(size: int, key: int) -> None:
    np.testing.assert_array_equal(np.sort(_whole(size, key)), np.arange(size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 65536, 65537])
def test_sizes_at_powers_of_two(size: int) -> None:
    np.testing.assert_array_equal(np.sort(_whole(size, 2**64 - 1)), np.arange(size))


@given(size=st.integers(min_value=1, max_value=10**6), key=KEYS, data=st.data())
def test_a_position_does_not_depend_on_what_else_is_asked(size: int, key: int, data: st.DataObject) -> None:
    positions = np.array(data.draw(st.lists(st.integers(min_value=0, max_value=size - 1), max_size=5)), dtype=np.int64)
    together = permuted(positions, size, key)
    alone = [int(permuted(positions[place : place + 1], size, key)[0]) for place in range(positions.size)]
    assert together.tolist() == alone


@pytest.mark.parametrize("size", [3, 10, 64, 100])
def test_each_row_comes_first_equally_often_over_keys(size: int) -> None:
    firsts = [int(permuted(np.zeros(1, dtype=np.int64), size, key)[0]) for key in range(40 * size)]
    assert stats.chisquare(np.bincount(firsts, minlength=size)).pvalue > 1e-3


def test_neighbours_are_unrelated() -> None:
    order = _whole(20000, 12345)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(order, np.arange(20000))[0, 1]) < 0.03


def test_keys_differ() -> None:
    same = (_whole(1000, 1) == _whole(1000, 2)).sum()
    assert same < 10


def test_golden_order() -> None:
    # A changed order changes every training: it has to be meant.
    assert _whole(10, 1).tolist() == [5, 1, 3, 2, 8, 0, 9, 6, 7, 4]


def test_a_hundred_million_rows_cost_no_more_than_the_positions_asked_for() -> None:
    size = 10**8
    rows = permuted(np.arange(size - 1000, size, dtype=np.int64), size, 7)
    assert np.unique(rows).size == 1000
    assert rows.min() >= 0
    assert rows.max() < size
    assert rows.max() > 0.9 * size


@pytest.mark.parametrize("position", [-1, 5])
def test_positions_outside_are_refused(position: int) -> None:
    with pytest.raises(ValueError, match=r"0\.\.4"):
        permuted(np.array([position]), 5, 1)
