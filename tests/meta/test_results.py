"""The tables under results/, and the numbers of pictures, are what the result files beside them give, to the byte."""

from pathlib import Path

import pytest
from package_sources import REPOSITORY

from mtl import api
from mtl.studies.compared import compared
from mtl.studies.pictures.picture import Source
from mtl.studies.pictures.registry import drawings
from mtl.studies.pictures.save import picture_csv
from mtl.studies.study_layout import StudyLayoutName

STUDIES = sorted(path.parent for path in (REPOSITORY / "results").glob("*/study.yaml"))
TABLES = sorted((REPOSITORY / "results").rglob("table.md"))


def test_there_are_results() -> None:
    assert TABLES


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_a_table_is_made_from_the_results_beside_it(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == api.table(path.parent, layout="md")


@pytest.mark.parametrize("place", STUDIES, ids=lambda path: path.name)
@pytest.mark.parametrize("layout", ["md", "csv"])
def test_a_comparison_is_made_from_the_study_beside_it(place: Path, layout: StudyLayoutName) -> None:
    assert (place / f"comparison.{layout}").read_bytes().decode("utf-8") == api.table(place, layout=layout)


@pytest.mark.parametrize("place", STUDIES, ids=lambda path: path.name)
def test_pictures_show_the_study_beside_them(place: Path) -> None:
    found = compared([place])
    made = {name: picture_csv(drawing.points) for name, drawing in drawings(Source(found.arms, found.table))[0].items()}
    kept = {path.stem: path.read_bytes().decode("utf-8") for path in (place / "pictures").glob("*.csv")}
    assert kept == made
    assert made
