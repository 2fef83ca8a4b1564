"""The page of a study in a real browser: nothing to complain of, nothing asked of a network, readable on any screen."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, find_browser
from study_directories import write_planned_study

from mtl import api
from mtl.studies.run_state import Failure, note_failure

STUDIES = ("half finished", "committed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed: its package is called chromium")
    page = Page(program, tmp_path_factory.mktemp("profile"))
    yield page
    page.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    study = write_planned_study(folder / "study", without=[("tuned", 2)], question="Is a<b & b>c, always? " * 6)
    lost = study / "runs" / "tuned" / "seed-2-00000000"
    note_failure(lost, Failure(exit_code=4, message="no such file: " + "/a/very/long/path" * 30))
    return {
        "half finished": api.report(study, folder / "half.html"),
        "committed": api.report(repository / "results" / "mini_sampling", folder / "committed.html"),
    }


@pytest.mark.parametrize("study", STUDIES)
def test_nothing_is_complained_of_and_nothing_asked_of_a_network(
    study: str, browser: Page, reports: dict[str, Path]
) -> None:
    browser.messages.clear()
    browser.open(reports[study], 1280)
    assert browser.messages == []
    outside = [address for address in browser.requests if not address.startswith(("file:", "data:"))]
    assert outside == []
    assert [address for address in browser.requests if address.startswith("file:")] == [
        reports[study].resolve().as_uri()
    ]


@pytest.mark.parametrize("width", [1280, 768, 390, 320])
@pytest.mark.parametrize("study", STUDIES)
def test_the_page_is_never_wider_than_the_screen(
    study: str, width: int, browser: Page, reports: dict[str, Path]
) -> None:
    browser.open(reports[study], width)
    assert browser.value("innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") <= width
    # What is wider scrolls within its own box.
    boxes = "[...document.querySelectorAll('.scroll, pre')]"
    assert browser.value(f"{boxes}.length") > 3
    assert browser.value(f"{boxes}.every(box => box.clientWidth <= innerWidth)")
    assert browser.value(
        "[...document.querySelectorAll('p, li, dd, figcaption')].every(e => e.scrollWidth <= innerWidth)"
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_every_picture_is_shown_in_the_version_for_the_screen(
    width: int, browser: Page, reports: dict[str, Path]
) -> None:
    browser.open(reports["committed"], width)
    images = "[...document.images]"
    assert browser.value(f"{images}.length") >= 2
    assert browser.value(f"{images}.every(image => image.complete && image.naturalWidth > 100)")
    narrow = browser.value(f"{images}.every(image => image.currentSrc !== image.src)")
    assert narrow == (width == 390)
    assert browser.value(f"{images}.every(image => image.alt.length > 20)")


def contrast(browser: Page, element: str) -> float:
    """WCAG's contrast of an element's text with the page, from 1 to 21."""
    script = """(() => {
      const light = colour => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
          .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
      };
      const both = [getComputedStyle(document.querySelector('ELEMENT')).color,
                    getComputedStyle(document.body).backgroundColor].map(light).sort((a, b) => b - a);
      return (both[0] + 0.05) / (both[1] + 0.05);
    })()""".replace("ELEMENT", element)
    return float(browser.value(script))


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_both_colour_schemes(dark: bool, browser: Page, reports: dict[str, Path]) -> None:
    browser.open(reports["half finished"], 1280, dark=dark)
    page = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in page[4:-1].split(",")) < 200) == dark
    for element in (".said", ".question", ".caveats h2", "nav a", "td.good", "td.quiet", "figcaption"):
        assert contrast(browser, element) >= 4.5, element


def test_a_screenshot_shows_something(browser: Page, reports: dict[str, Path], tmp_path: Path) -> None:
    browser.open(reports["committed"], 1280)
    browser.screenshot(tmp_path / "page.png")
    content = (tmp_path / "page.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert width == 1280
    assert height > 2000
    assert len(content) > 50_000


def test_a_fault_would_be_noticed(browser: Page, tmp_path: Path) -> None:
    faulty = tmp_path / "faulty.html"
    faulty.write_text(
        "<script>console.error('no'); throw 1</script><img src='http://localhost:9/a.png'>"
        "<p style='width: 2000px'>.</p>",
        encoding="utf-8",
    )
    browser.messages.clear()
    browser.open(faulty, 390)
    assert len(browser.messages) >= 2
    assert "http://localhost:9/a.png" in browser.requests
    assert browser.value("document.documentElement.scrollWidth") > 390
