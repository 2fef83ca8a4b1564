"""The page of a study, read as a browser would: its elements and its text."""

from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

from mtl.studies.opened import open_study
from mtl.studies.report.content import gather
from mtl.studies.report.page import report_page

EMPTY = {"br", "img", "link", "meta", "source"}


class Reader(HTMLParser):
    """Every element with its attributes, the text without style, and whether all that is opened is closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in EMPTY:
            self._open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self._open.pop() == name

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "title"):
            self.text += " " + data.replace("\u00a0", " ")


def read(path: Path, *, pictures: bool = False) -> Reader:
    """The page of a study; pictures take longest, and are drawn only where a test is about them."""
    content = gather(open_study(path))
    if pictures:
        return Reader(report_page(content))
    with mock.patch("mtl.studies.report.page.figures", return_value=([], [])):
        return Reader(report_page(content))
