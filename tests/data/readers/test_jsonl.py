"""One JSON object a line, each checked."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_tasks import own_task, refused

from mtl.data.readers import jsonl
from mtl.data.sources import count_rows, read_rows

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)


def _write(folder: Path, *lines: str) -> None:
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")


def test_lines_end_at_a_line_feed_only(tmp_path: Path) -> None:
    row = json.dumps({"b": "x\u2028y\x85", "a": "", "label": "yes", "more": [1]}, ensure_ascii=False)
    _write(tmp_path, row, "", row + "\r")
    spec = own_task(tmp_path, "jsonl")
    rows = read_rows(spec, "train", None)
    assert rows.texts == (["", ""], ["x\u2028y\x85"] * 2)
    assert count_rows(spec, "train", None) == 2


def test_labels_may_be_numbers_or_truth_values(tmp_path: Path) -> None:
    _write(tmp_path, '{"a": "x", "b": "y", "label": 0}', '{"a": "x", "b": "y", "label": 1}')
    rows = read_rows(own_task(tmp_path, "jsonl", labels={"0": "no", "1": "yes"}), "train", None)
    assert rows.labels is not None
    assert rows.labels.tolist() == [0, 1]
    _write(tmp_path, '{"a": "x", "b": "y", "label": true}', '{"a": "x", "b": "y", "label": false}')
    rows = read_rows(own_task(tmp_path, "jsonl", labels={"false": "no", "true": "yes"}), "train", None)
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0]


@given(st.lists(st.tuples(TEXT, TEXT), max_size=8))
def test_whatever_json_writes_is_read_back(pairs: list[tuple[str, str]]) -> None:
    content = "".join(json.dumps({"a": one, "label": other}) + "\n" for one, other in pairs).encode()
    table = jsonl.parse(content, Path("t.jsonl"), texts=["a"], label="label")
    assert table.columns == {"a": [one for one, _ in pairs], "label": [other for _, other in pairs]}
    assert jsonl.count_rows(content) == len(pairs)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": "x"', "line 2: not JSON (Expecting"),
        ("[" * 100_000, "line 2: not JSON ("),
        ("[1]", "line 2: not a JSON object but [1]"),
        ('{"a": "x", "label": "yes"}', "line 2: the key 'b' is absent among a, label"),
        ('{"a": "x", "b": null, "label": "yes"}', "line 2: column 'b' holds nothing, which is no text"),
        ('{"a": 5, "b": "y", "label": "yes"}', "line 2: column 'a' holds 5, which is no text"),
        ('{"a": "\\ud800", "b": "y", "label": "yes"}', "line 2: column 'a' holds half a character"),
        ('{"a": "x", "b": "y", "label": null}', "line 2: column 'label' holds nothing, which is neither"),
        ('{"a": "x", "b": "y", "label": -1}', "line 2: label '-1' in column 'label' is none of 'no', 'yes'"),
        ('{"a": "x", "b": "y", "label": NaN}', "line 2: label 'nan'"),
    ],
)
def test_faults_are_named_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    _write(tmp_path, '{"a": "x", "b": "y", "label": "yes"}', line)
    assert f"{tmp_path}/train.jsonl, {message}" in refused(own_task(tmp_path, "jsonl"))
