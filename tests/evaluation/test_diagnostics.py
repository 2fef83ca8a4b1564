"""Scores by phenomenon: scikit-learn's correlation over the rows that carry each tag; a row counts in all of its."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef

from mtl.errors import DataError
from mtl.evaluation.diagnostics import COLUMNS, diagnose

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 0])
PREDICTIONS = np.array([0, 1, 2, 1, 1, 0, 0, 2])
TAGS = [
    [("Logic", "Negation"), ("Logic", "Double negation"), ("Knowledge", "World")],
    [("Logic", "Negation")],
    [("Logic", "Negation")],
    [],
    [("Knowledge", "World")],
    [("Logic", "Negation"), ("Knowledge", "World")],
    [("Knowledge", "Common sense")],
    [("Logic", "Double negation")],
]


def expected(rows: list[int]) -> float:
    return 100.0 * float(matthews_corrcoef(LABELS[rows], PREDICTIONS[rows]))


@pytest.mark.filterwarnings("ignore:A single label was found")
def test_every_tag_is_scored_over_all_rows_that_carry_it() -> None:
    found = diagnose(PREDICTIONS, LABELS, TAGS)
    assert (found.overall.tag, found.overall.rows) == ("all", 8)
    assert found.overall.r3 == pytest.approx(expected(list(range(8))))
    scores = {score.tag: (score.rows, score.r3) for score in (*found.coarse, *found.fine)}
    by_tag = {
        "Knowledge": [0, 4, 5, 6],
        # Row 0 has two tags of this category and counts once in it.
        "Logic": [0, 1, 2, 5, 7],
        "Knowledge__Common sense": [6],
        "Knowledge__World": [0, 4, 5],
        "Logic__Double negation": [0, 7],
        "Logic__Negation": [0, 1, 2, 5],
    }
    assert list(scores) == list(by_tag), "coarse first, then fine, each in order of name"
    for tag, rows in by_tag.items():
        assert scores[tag][0] == len(rows)
        assert scores[tag][1] == pytest.approx(expected(rows))


def test_the_table_is_written_as_csv_and_json() -> None:
    found = diagnose(PREDICTIONS, LABELS, TAGS)
    rows = list(csv.reader(io.StringIO(found.csv())))
    assert tuple(rows[0]) == COLUMNS
    assert [row[:2] for row in rows[1:3]] == [["overall", "all"], ["coarse", "Knowledge"]]
    assert [float(row[2]) for row in rows[1:]] == [row[2] for row in found.table()]
    assert json.loads(found.json())["fine"][0] == {"tag": "Knowledge__Common sense", "r3": 0.0, "rows": 1}


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sets(st.sampled_from("abc"))), min_size=1))
def test_scores_equal_scikit_learns(rows: list[tuple[int, int, set[str]]]) -> None:
    labels, predictions = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found = diagnose(predictions, labels, [[("coarse", tag) for tag in row[2]] for row in rows])
    assert sum(score.rows for score in found.fine) == sum(len(row[2]) for row in rows)
    for score in found.fine:
        chosen = [place for place, row in enumerate(rows) if score.tag.removeprefix("coarse__") in row[2]]
        assert score.r3 == pytest.approx(100 * matthews_corrcoef(labels[chosen], predictions[chosen]), abs=1e-9)


def test_lengths_that_differ_and_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="7 rows of tags"):
        diagnose(PREDICTIONS, LABELS, TAGS[:-1])
    with pytest.raises(DataError, match="without rows"):
        diagnose(LABELS[:0], LABELS[:0], [])
