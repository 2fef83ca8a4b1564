"""Which evaluation counts as the best, and when patience ends."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mtl.training.selection import Selection

NAN = float("nan")
SCORES = st.lists(st.one_of(st.just(NAN), st.integers(0, 4).map(float)), max_size=12)


def seen(scores: list[float], patience: int | None = None) -> Selection:
    selection = Selection(patience)
    for step, score in enumerate(scores):
        selection.see(step, score)
    return selection


def test_tie_keeps_the_earlier() -> None:
    selection = Selection(None)
    assert [selection.see(step, score) for step, score in enumerate([1.0, 3.0, 3.0, 2.0])] == [True, True, False, False]
    assert (selection.best_step, selection.best_score, selection.looks) == (1, 3.0, 4)


def test_nan_is_never_the_best() -> None:
    selection = Selection(None)
    assert [selection.see(step, score) for step, score in enumerate([NAN, -1.0, NAN, 0.0])] == [
        False,
        True,
        False,
        True,
    ]
    assert (selection.best_step, selection.best_score) == (3, 0.0)
    assert seen([NAN, NAN]).best_score is None


def test_patience_counts_evaluations_in_a_row_without_a_better_one() -> None:
    selection = Selection(2)
    ended = []
    for step, score in enumerate([1.0, 0.0, 2.0, 2.0, NAN]):
        selection.see(step, score)
        ended.append(selection.exhausted)
    assert ended == [False, False, False, False, True]
    assert not seen([1.0] + [0.0] * 50).exhausted


@given(scores=SCORES)
def test_best_is_the_first_of_the_highest(scores: list[float]) -> None:
    selection = seen(scores)
    real = [score for score in scores if score == score]
    assert selection.looks == len(scores)
    assert selection.best_score == (max(real) if real else None)
    if real:
        assert selection.best_step == scores.index(max(real))


@given(scores=SCORES, place=st.integers(0, 12))
def test_state_continues_where_it_was_taken(scores: list[float], place: int) -> None:
    whole, first, second = seen(scores, 3), seen(scores[:place], 3), Selection(3)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for step, score in enumerate(scores[place:], start=min(place, len(scores))):
        second.see(step, score)
    assert second == whole
    assert second.exhausted == whole.exhausted
