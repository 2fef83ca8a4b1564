"""CSV as RFC 4180 has it, read strictly."""

import csv
import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_tasks import own_task, refused

from mtl.data.build_store import _key
from mtl.data.readers import csv_file
from mtl.data.sources import count_rows, read_rows, source_fingerprint
from mtl.errors import DataError

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


def _write(folder: Path, content: str, name: str = "train.csv") -> bytes:
    (folder / name).write_bytes(content.encode())
    return content.encode()


def test_quoted_cells_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    content = _write(tmp_path, 'b,label,a\r\n"x, y",yes,"he said ""no"""\r\n"two\nlines",no,\r\n')
    spec = own_task(tmp_path, "csv")
    rows = read_rows(spec, "train", None)
    assert rows.texts == (['he said "no"', ""], ["x, y", "two\nlines"])
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0]
    assert rows.fingerprint == hashlib.sha256(content).hexdigest() == source_fingerprint(spec, "train", None)
    assert count_rows(spec, "train", None) == 2


def test_a_byte_order_mark_and_blank_last_lines_are_no_data(tmp_path: Path) -> None:
    _write(tmp_path, "\ufeffa,b,label\nx,y,yes\n\n\n")
    spec = own_task(tmp_path, "csv")
    assert read_rows(spec, "train", None).texts == (["x"], ["y"])
    assert count_rows(spec, "train", None) == 1


@given(st.lists(st.tuples(TEXT, TEXT), max_size=8))
def test_whatever_csv_writes_is_read_back(pairs: list[tuple[str, str]]) -> None:
    written = io.StringIO(newline="")
    writer = csv.writer(written, quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *pairs])
    content = written.getvalue().encode()
    table = csv_file.parse(content, Path("t.csv"), wanted=["second", "first"])
    assert table.columns == {"first": [one for one, _ in pairs], "second": [other for _, other in pairs]}
    assert csv_file.count_rows(content, Path("t.csv")) == len(pairs)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "train.csv: the file is empty; its first line has to name the columns a, b, label"),
        ("a,b\nx,y\n", "train.csv: column 'label' is absent among the columns a, b"),
        ("a,a,b,label\n", "column 'a' stands 2 times"),
        ('a,b,label\n"x\ny",z,yes\nx,yes\n', "train.csv, line 4: 2 columns where the header has 3"),
        ("a,b,label\nx,y,yes\nx,y,z,yes\n", "train.csv, line 3: 4 columns where the header has 3"),
        ("a,b,label\nx,y,yes\n\nx,y,yes\n", "train.csv, line 3: 1 columns where the header has 3"),
        (
            'a,b,label\n"x\ny",z,yes\nx,y,maybe\n',
            "train.csv, line 4: label 'maybe' in column 'label' is none of 'no', 'yes'",
        ),
        ("a,b,label\nx,y,-1\n", "train.csv, line 2: label '-1'"),
        ('a,b,label\nx,"y"z,yes\n', "train.csv, line 2: ',' expected after '\"'"),
        ('a,b,label\nx,y,yes\nx,"y,yes\n', "train.csv, line 3: unexpected end of data"),
    ],
)
def test_faults_are_named_by_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    _write(tmp_path, content)
    assert message in refused(own_task(tmp_path, "csv"))


def test_other_bytes_than_utf8_are_named_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(b"a,b,label\nx,y,yes\nx,\xff,no\n")
    assert "train.csv, line 3: not UTF-8" in refused(own_task(tmp_path, "csv"))
    with pytest.raises(DataError, match="line 3: not UTF-8"):
        count_rows(own_task(tmp_path, "csv"), "train", None)


def test_a_missing_file_is_named_with_the_place_it_was_looked_for(tmp_path: Path) -> None:
    spec = own_task(tmp_path, "csv", files={"train": "../other/train.csv", "dev": "dev.csv"})
    assert f"mine/pairs, split train: no such file: {tmp_path}/../other/train.csv" in refused(spec)
    assert f"no such file: {tmp_path}/dev.csv" in refused(spec, "dev")
    assert count_rows(spec, "train", None) is None


def test_the_same_bytes_in_another_format_are_another_store(tmp_path: Path) -> None:
    keys = [
        _key(own_task(tmp_path, "csv", format=name), "train", "tokenizer", "bytes", 128)
        for name in ("csv", "tsv", "jsonl")
    ]
    assert len(set(keys)) == 3


def test_scores_are_checked_as_well(tmp_path: Path) -> None:
    _write(tmp_path, "a,b,label\nx,y,4.5\nx,y,7\n")
    spec = own_task(tmp_path, "csv", labels=None, score_range=["0", "5"])
    assert "train.csv, line 3: score '7' in column 'label' is no number from 0 to 5" in refused(spec)


def test_an_unlabelled_split_needs_no_label_column(tmp_path: Path) -> None:
    _write(tmp_path, "a,b\nx,y\n", "test.csv")
    files = {"train": "train.csv", "dev": "dev.csv", "test": "test.csv"}
    spec = own_task(tmp_path, "csv", files=files, unlabelled=["test"])
    assert read_rows(spec, "test", None).labels is None
    assert "column 'label' is absent" in refused(own_task(tmp_path, "csv", files=files), "test")


def test_a_tsv_file_has_no_quoting(tmp_path: Path) -> None:
    _write(tmp_path, 'a\tb\tlabel\n"x\ty"\tyes\n', "train.tsv")
    spec = own_task(tmp_path, "tsv")
    assert read_rows(spec, "train", None).texts == (['"x'], ['y"'])
    assert count_rows(spec, "train", None) == 1
