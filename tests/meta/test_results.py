"""The tables under results/ are what the result files beside them give, to the byte."""

from pathlib import Path

import pytest
from package_sources import REPOSITORY

from mtl import api

TABLES = sorted((REPOSITORY / "results").rglob("table.md"))


def test_there_are_results() -> None:
    assert TABLES


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_a_table_is_made_from_the_results_beside_it(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == api.table(path.parent, layout="md")
