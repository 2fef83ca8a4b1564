"""A task's endless order: each row once an epoch, by seed, task and epoch alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.data.streams import TaskStream


def _stream(rows: int, *, task: str = "glue/rte", seed: int = 1) -> TaskStream:
    return TaskStream(task, seed, np.arange(rows) * 3, np.arange(rows) + 1)


@given(size=st.integers(min_value=1, max_value=300), epoch=st.integers(min_value=0, max_value=5))
def test_each_row_comes_once_an_epoch(size: int, epoch: int) -> None:
    chosen = _stream(size).chosen(np.arange(epoch * size, (epoch + 1) * size))
    np.testing.assert_array_equal(np.sort(chosen), np.arange(size))


@given(size=st.integers(min_value=1, max_value=50), start=st.integers(min_value=0, max_value=200))
def test_places_across_epochs_are_those_asked_for_alone(size: int, start: int) -> None:
    stream = _stream(size)
    places = np.arange(start, start + 60)
    alone = [int(stream.chosen(places[at : at + 1])[0]) for at in range(places.size)]
    assert stream.chosen(places).tolist() == alone


def test_epochs_tasks_and_seeds_have_orders_of_their_own() -> None:
    first = _stream(100).chosen(np.arange(200))
    assert (first[:100] != first[100:]).any()
    assert (first != _stream(100, task="glue/cola").chosen(np.arange(200))).any()
    assert (first != _stream(100, seed=2).chosen(np.arange(200))).any()
    np.testing.assert_array_equal(first, _stream(100).chosen(np.arange(200)))


def test_the_mean_length() -> None:
    assert _stream(4).mean_length == 2.5


def test_a_stream_too_long_to_be_kept_whole_has_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.arange(90, 250)
    kept = _stream(100).chosen(places)
    monkeypatch.setattr("mtl.data.streams._LARGEST_WHOLE", 99)
    assert np.array_equal(_stream(100).chosen(places), kept)
