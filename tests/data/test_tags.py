"""Tags of a diagnostic set's rows, from files in the official form."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from mtl.data.sources import read_rows
from mtl.data.tags import read_tags
from mtl.errors import ConfigError, DataError
from mtl.tasks.glue import AX
from mtl.tasks.mini import SPECS

HEADER = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel"
ROWS = (
    "Factivity;Quantifiers\t\tNegation\t\tArtificial\tone\ttwo\tneutral",
    "\t\t\t\tNews\tthree\tfour\tentailment",
    "\tCore args; Datives ;\t\tWorld knowledge\tNews\tfive\tsix\tcontradiction",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "glue" / "AX"
    folder.mkdir(parents=True)
    (folder / "diagnostic-full.tsv").write_bytes("\r\n".join([HEADER, *ROWS, ""]).encode())
    return tmp_path


def test_a_row_has_none_one_or_several_tags(root: Path) -> None:
    fingerprint = read_rows(AX, "dev", root).fingerprint
    assert read_tags(AX, "dev", root, expected=fingerprint) == [
        {("Lexical Semantics", "Factivity"), ("Lexical Semantics", "Quantifiers"), ("Logic", "Negation")},
        set(),
        {
            ("Predicate-Argument Structure", "Core args"),
            ("Predicate-Argument Structure", "Datives"),
            ("Knowledge", "World knowledge"),
        },
    ]


def test_a_file_that_changed_since_its_rows_were_read_is_refused(root: Path) -> None:
    with pytest.raises(DataError, match="not the file whose rows were predicted"):
        read_tags(AX, "dev", root, expected="0" * 64)


def test_a_missing_file_and_a_task_without_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"diagnostic-full\.tsv"):
        read_tags(AX, "dev", tmp_path, expected="")
    with pytest.raises(ConfigError, match="mini/"):
        read_tags(SPECS[0], "dev", tmp_path, expected="")


def test_the_official_file_has_the_tags_of_its_categories(shared_data: Path) -> None:
    path = shared_data / "glue" / "AX" / "diagnostic-full.tsv"
    rows = read_rows(AX, "dev", shared_data)
    tags = read_tags(AX, "dev", shared_data, expected=hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(tags) == len(rows) == 1104
    counts = Counter(category for pairs in tags for category in {pair[0] for pair in pairs})
    # Counted with cut and grep over the columns.
    assert counts == {
        "Lexical Semantics": 368,
        "Predicate-Argument Structure": 424,
        "Logic": 364,
        "Knowledge": 284,
    }
    assert len({pair for pairs in tags for pair in pairs}) == 33
