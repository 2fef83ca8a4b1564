"""The table of leaderboards agrees with what the server is known to want and with the tasks' own data."""

import pytest

from mtl.evaluation.benchmarks import BENCHMARKS, GLUE, SubmissionFile
from mtl.tasks.registry import get

# Lines of the files of the GLUE server's sample submission, header included.
LINES = {
    "AX.tsv": 1105,
    "CoLA.tsv": 1064,
    "MNLI-mm.tsv": 9848,
    "MNLI-m.tsv": 9797,
    "MRPC.tsv": 1726,
    "QNLI.tsv": 5464,
    "QQP.tsv": 390_966,
    "RTE.tsv": 3001,
    "SST-2.tsv": 1822,
    "STS-B.tsv": 1380,
    "WNLI.tsv": 147,
}

EVERY_FILE = [file for benchmark in BENCHMARKS.values() for file in benchmark.files]


def test_glue_has_its_eleven_files() -> None:
    assert {file.name: file.rows + 1 for file in GLUE.files} == LINES


@pytest.mark.parametrize("file", EVERY_FILE, ids=lambda file: file.name)
def test_rows_and_labels_are_those_of_the_task(file: SubmissionFile) -> None:
    spec = get(file.task)
    assert spec.splits[file.split].official_rows == file.rows
    assert not spec.splits[file.split].labelled
    assert tuple(file.spellings) == spec.labels
    assert file.score_range == spec.score_range
    # What stands in the official train files is what the server reads.
    assert {value: label for label, value in file.spellings.items()} == (
        spec.label_values or {label: label for label in spec.labels}
    )


@pytest.mark.parametrize("file", EVERY_FILE, ids=lambda file: file.name)
def test_the_constant_is_an_answer(file: SubmissionFile) -> None:
    if file.score_range is None:
        assert file.constant in file.spellings.values()
    else:
        assert file.score_range[0] <= float(file.constant) <= file.score_range[1]
