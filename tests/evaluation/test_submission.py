"""Submission files: byte for byte what the leaderboard reads, and the same bytes each time."""

import dataclasses
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.errors import DataError, NonFiniteError
from mtl.evaluation.benchmarks import GLUE, Benchmark, SubmissionFile
from mtl.evaluation.evaluate import SplitPredictions
from mtl.evaluation.submission import constant_file, submission_file, submission_zip
from mtl.evaluation.submission_check import zip_faults
from mtl.tasks.registry import get


def glue_file(name: str, rows: int) -> SubmissionFile:
    return dataclasses.replace(next(file for file in GLUE.files if file.name == name), rows=rows)


def predicted(values: list[int] | list[float], rows: list[int] | None = None) -> SplitPredictions:
    places = np.array(range(len(values)) if rows is None else rows)
    kind = np.int64 if all(isinstance(value, int) for value in values) else np.float32
    return SplitPredictions(places, np.zeros((len(values), 1), dtype=np.float32), np.array(values, dtype=kind), None)


@pytest.mark.parametrize(
    ("name", "values", "lines"),
    [
        ("RTE.tsv", [1, 0, 1], ["not_entailment", "entailment", "not_entailment"]),
        ("WNLI.tsv", [1, 0, 0], ["1", "0", "0"]),
        ("MRPC.tsv", [0, 1, 1], ["0", "1", "1"]),
        ("MNLI-mm.tsv", [0, 1, 2], ["entailment", "neutral", "contradiction"]),
        ("STS-B.tsv", [-0.7, 5.0004, 2.34567], ["0.000", "5.000", "2.346"]),
    ],
)
def test_files_are_as_the_server_reads_them(name: str, values: list[int], lines: list[str]) -> None:
    file = glue_file(name, 3)
    content = submission_file(GLUE, file, get(file.task), predicted(values))
    rows = "".join(f"{index}\t{value}\n" for index, value in enumerate(lines))
    assert content == b"index\tprediction\n" + rows.encode()


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20))
def test_scores_are_clipped_and_rounded_only_in_the_file(scores: list[float]) -> None:
    file = glue_file("STS-B.tsv", len(scores))
    given_scores = predicted(scores)
    before = given_scores.predictions.copy()
    content = submission_file(GLUE, file, get(file.task), given_scores).decode()
    written = [float(line.split("\t")[1]) for line in content.splitlines()[1:]]
    assert np.abs(np.array(written) - np.clip(before, 0, 5)).max() <= 0.000501
    assert np.array_equal(given_scores.predictions, before)


def test_a_score_that_is_no_number_is_refused() -> None:
    file = glue_file("STS-B.tsv", 2)
    with pytest.raises(NonFiniteError, match=r"STS-B\.tsv: 1 predictions are not finite, the first in row 1"):
        submission_file(GLUE, file, get(file.task), predicted([1.0, float("nan")]))


@pytest.mark.parametrize("rows", [[1, 0, 2], [0, 1, 3]])
def test_rows_out_of_order_are_refused(rows: list[int]) -> None:
    file = glue_file("RTE.tsv", 3)
    with pytest.raises(DataError, match="in order"):
        submission_file(GLUE, file, get(file.task), predicted([0, 0, 1], rows))


def test_another_number_of_rows_than_the_servers_is_refused() -> None:
    file = glue_file("RTE.tsv", 4)
    with pytest.raises(DataError, match=r"RTE\.tsv: 3 rows of predictions, the test file has 4"):
        submission_file(GLUE, file, get(file.task), predicted([0, 0, 1]))


def test_a_zip_of_constants_is_whole_flat_and_the_same_each_time(tmp_path: Path) -> None:
    contents = {file.name: constant_file(GLUE, file) for file in GLUE.files}
    first = submission_zip(GLUE, contents)
    assert first == submission_zip(GLUE, dict(reversed(contents.items())))
    path = tmp_path / "glue.zip"
    path.write_bytes(first)
    assert zip_faults(GLUE, path) == []
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert [entry.filename for entry in archive.infolist()] == [file.name for file in GLUE.files]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o100644}
        assert archive.read("QQP.tsv").count(b"\n") == 390_966
        assert archive.read("RTE.tsv").startswith(b"index\tprediction\n0\tentailment\n1\tentailment\n")


def test_the_bytes_do_not_change_between_releases() -> None:
    small = Benchmark("glue", (glue_file("RTE.tsv", 2), glue_file("STS-B.tsv", 1)))
    packed = submission_zip(small, {file.name: constant_file(small, file) for file in small.files})
    assert hashlib.sha256(packed).hexdigest() == "4cfaca55efb174330fea397d0997c7c5b8df6e476bff4a9a9b4b4ae514952301"
