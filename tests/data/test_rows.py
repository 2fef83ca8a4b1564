"""Rows that an encoder runs for a number of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from mtl.data.rows import filled_rows, row_step


@given(st.integers(1, 200_000))
def test_there_is_filler_but_little_of_it(tokens: int) -> None:
    rows = filled_rows(tokens)
    assert 0 < rows - tokens <= max(16, tokens / 32)
    assert rows % row_step(tokens) == 0


def test_few_sizes_come_up() -> None:
    assert len({filled_rows(tokens) for tokens in range(300, 500)}) == 14
    assert len({filled_rows(tokens) for tokens in range(2048, 4096)}) == 32
