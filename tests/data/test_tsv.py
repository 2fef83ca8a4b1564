"""Tab-separated files are read as published: nothing unquoted, nothing split or dropped that is not a row's end."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.data import tsv
from mtl.errors import DataError

PATH = Path("somewhere/train.tsv")

# Anything a benchmark's text can hold: all but the two characters that end a cell, a row, or belong to a row's end.
CELLS = st.text(alphabet=st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), max_size=8)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8)


def _texts(content: str, *, wanted: tuple[str, ...] = ("a", "b"), header: tuple[str, ...] | None = None) -> list[str]:
    table = tsv.parse(content.encode(), PATH, wanted=wanted, header=header)
    return [" | ".join(cells) for cells in zip(*(table.columns[name] for name in wanted), strict=True)]


@given(rows=ROWS, line_end=st.sampled_from(["\n", "\r\n"]), last=st.sampled_from(["", "\n", "\r\n", "\n\n"]))
def test_every_cell_comes_back_as_it_was_written(rows: list[tuple[str, str, str]], line_end: str, last: str) -> None:
    content = line_end.join("\t".join(cells) for cells in [("a", "b", "c"), *rows]) + last
    table = tsv.parse(content.encode(), PATH, wanted=("c", "a"))
    assert table.columns == {"c": [row[2] for row in rows], "a": [row[0] for row in rows]}
    assert table.line_numbers == list(range(2, len(rows) + 2))
    assert tsv.count_rows(content.encode()) == len(rows)


@given(rows=ROWS)
def test_a_file_without_header_counts_and_reads_alike(rows: list[tuple[str, str, str]]) -> None:
    content = "\n".join("\t".join(cells) for cells in rows).encode()
    header = ("a", "b", "c")
    table = tsv.parse(content, PATH, wanted=("b",), header=header)
    assert table.columns["b"] == [row[1] for row in rows]
    assert tsv.count_rows(content, header=header) == len(rows)


def test_quotes_are_text() -> None:
    assert _texts('a\tb\n"open\tnever closed\n""\t"x"y"\n') == ['"open | never closed', '"" | "x"y"']


def test_only_a_line_feed_ends_a_row() -> None:
    strange = "one\u2028two\u0085three\x0bfour\x0cfive\x1csix\rseven"
    assert _texts(f"a\tb\n{strange}\tx\n") == [f"{strange} | x"]


def test_byte_order_mark_is_no_part_of_the_first_column() -> None:
    assert _texts("\ufeffa\tb\n1\t2\n") == ["1 | 2"]
    assert _texts("\ufeff1\t2\n", header=("a", "b")) == ["1 | 2"]
    assert tsv.count_rows("\ufeff".encode(), header=("a",)) == 0


def test_columns_are_found_by_name_whatever_else_there_is() -> None:
    assert _texts("extra\tb\tother\ta\nx\tB\ty\tA\n") == ["A | B"]


def test_empty_cells_are_kept() -> None:
    assert _texts("a\tb\n\t\nx\t\n") == [" | ", "x | "]


@pytest.mark.parametrize(("row", "columns"), [("1", 1), ("1\t2\t3", 3), ("", 1)])
def test_short_and_long_rows_are_refused_with_their_line(row: str, columns: int) -> None:
    with pytest.raises(DataError, match=rf"train\.tsv, line 3: {columns} columns where the header has 2"):
        _texts(f"a\tb\nx\ty\n{row}\nx\ty\n")


def test_malformed_lines_of_an_official_file_are_dropped_and_counted() -> None:
    content = b"a\tb\n1\t2\ntorn\n3\t4\n"
    table = tsv.parse(content, PATH, wanted=("b",), official_rows=2)
    assert table.columns["b"] == ["2", "4"]
    assert table.line_numbers == [2, 4]
    assert table.dropped_lines == 1
    assert tsv.count_rows(content, official_rows=2) == 2


@pytest.mark.parametrize("official_rows", [None, 1, 3, 4])
def test_malformed_lines_of_any_other_file_are_not_dropped(official_rows: int | None) -> None:
    with pytest.raises(DataError, match="line 3"):
        tsv.parse(b"a\tb\n1\t2\ntorn\n3\t4\n", PATH, wanted=("b",), official_rows=official_rows)


@pytest.mark.parametrize(
    ("header", "fault"), [("a\tc", "'b' is absent among the columns a, c"), ("b\ta\tb", "stands 2 times")]
)
def test_absent_and_repeated_columns_are_refused(header: str, fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        _texts(f"{header}\n")


def test_an_empty_file_cannot_name_its_columns() -> None:
    with pytest.raises(DataError, match="empty"):
        _texts("")


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        tsv.parse("a\tb\ncaf\u00e9\tx\n".encode("latin-1"), PATH, wanted=("a",))
