"""The page of a study as a file: it needs nothing else, carries nothing out, and is the same wherever it is made."""

from pathlib import Path

import pytest
from report_reader import read
from study_directories import runs_of, write_planned_study

from mtl import api
from mtl.cli import main
from mtl.studies.report.html import escaped, tag
from mtl.studies.report.style import STYLE
from mtl.studies.run_state import Failure, note_failure


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planned_study(tmp_path_factory.mktemp("study"))


def test_links_lead_to_sections(study: Path) -> None:
    page = read(study)
    there = {attributes.get("id") for _, attributes in page.elements}
    links = [str(attributes["href"]) for name, attributes in page.elements if name == "a"]
    assert len(links) >= 6
    assert all(link.removeprefix("#") in there for link in links)


def test_nothing_outside_the_page_is_named(study: Path) -> None:
    for name, attributes in read(study, pictures=True).elements:
        assert name not in ("script", "iframe", "object", "embed", "form", "base")
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("src", "srcset", "href"):
                assert str(value).startswith(("data:", "#"))
    assert "url(" not in STYLE


def test_whatever_is_in_the_files_is_shown_and_never_carried_out(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)> \" ' & \x00\x1b[31m"
    path = write_planned_study(tmp_path, question=attack.replace("\x00\x1b", ""), without=[("mixed", 2)])
    lost = next(run for run in runs_of(path) if (run.arms[0], run.seed) == ("mixed", 2))
    note_failure(lost.directory, Failure(exit_code=1, message=attack))
    page = read(path)
    assert "script" not in {name for name, _ in page.elements}
    assert all(str(attributes["src"]).startswith("data:") for name, attributes in page.elements if name == "img")
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in page.text


def test_escaping() -> None:
    assert escaped('<a href="x">\'&') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;"
    assert escaped("\ud800\x00ok\n") == "��ok\n"
    assert tag("p", tag("b", "<"), "&", class_='"', title=None) == '<p class="&quot;"><b>&lt;</b>&amp;</p>'
    assert escaped(escaped("<")) == "&lt;"


def test_equal_studies_give_equal_bytes_wherever_they_lie(study: Path, tmp_path: Path) -> None:
    again = write_planned_study(tmp_path / "elsewhere")
    one = api.report(study, tmp_path / "one.html").read_bytes()
    assert one == api.report(study, tmp_path / "two.html").read_bytes()
    assert one == api.report(again, tmp_path / "other.html").read_bytes()
    assert str(study).encode() not in one


def test_the_command_line_writes_into_the_study_or_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_planned_study(tmp_path / "study")
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out == f"{path / 'report.html'}\n"
    assert (path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["report", str(path), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == (path / "report.html").read_bytes()
    assert main(["report", str(path), "--out", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert main(["report", str(path / "runs")]) == 2
    assert "holds no study.yaml" in capsys.readouterr().err
