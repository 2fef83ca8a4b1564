"""A study as one HTML file that needs nothing else: no network, no script, no file beside it."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from mtl.atomic import write_text_atomically
from mtl.errors import ConfigError
from mtl.studies.comparable import Kind
from mtl.studies.opened import open_study
from mtl.studies.report.answer import Answer, answer
from mtl.studies.report.caveats import caveats
from mtl.studies.report.content import Content, gather
from mtl.studies.report.figures import figures
from mtl.studies.report.html import Html, joined, tag
from mtl.studies.report.runs import progress, runs
from mtl.studies.report.sections import (
    Section,
    caveats_box,
    costs,
    differences,
    listed,
    machine,
    paragraph,
    reading,
    scores,
    section,
    settings,
)
from mtl.studies.report.style import STYLE
from mtl.studies.report.trials import trials

# Whatever a name or a message in the study should contain: the page may load nothing and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_VERDICTS = {
    "better": "better",
    "worse": "worse",
    "not distinguishable": "not distinguishable",
    "not tested": "not tested",
    "not yet": "not yet known",
    "exploratory": "exploratory",
}


def write_report(study: Path, out: Path | None = None, *, allowed: Collection[Kind] = ()) -> Path:
    """Write the page of the study in the directory ``study``; its path, ``report.html`` there by default.

    ConfigError where ``study`` is none or the page cannot be where it should; DataError where a run's file is damaged.
    """
    page = report_page(gather(open_study(study), allowed), allowed)
    target = out or study / "report.html"
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise ConfigError(f"{target} cannot be the page: --out takes a file in a folder that is there")
    write_text_atomically(target, page)
    return target


def report_page(content: Content, allowed: Collection[Kind] = ()) -> str:
    """The whole page; equal content gives equal text, with the same version of matplotlib."""
    spec = content.study.spec
    found = answer(content)
    drawn, undrawn = figures(content, allowed)
    parts = [
        section("pictures", "Pictures", *drawn, _undrawn(undrawn)),
        scores(content),
        differences(content),
        costs(content),
        trials(content),
        runs(content),
        settings(content),
        machine(content),
        reading(content),
    ]
    sections = [part for part in parts if part.content]
    header = tag(
        "header",
        tag("p", "Study", class_="kicker"),
        tag("h1", spec.name),
        tag("p", spec.question, class_="question"),
        progress(content),
    )
    command = f"mtl report {spec.name}"
    footer = tag("footer", "Made from the result files of the runs by ", tag("code", command), ".")
    shown = [part.html for part in sections]
    body = tag("main", header, _answer(found), caveats_box(caveats(content)), _links(sections), *shown, footer)
    head = joined(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{spec.name}: {found.verdict}"),
        tag("style", Html(STYLE)),
    )
    return str(joined(Html("<!DOCTYPE html>"), tag("html", tag("head", head), tag("body", body), lang="en"), ""))


def _answer(found: Answer) -> Html:
    facts = [tag("div", tag("dt", name), tag("dd", value)) for name, value in found.facts]
    return tag(
        "section",
        tag("h2", "Primary comparison: ", tag("span", _VERDICTS[found.verdict], class_="verdict")),
        tag("p", _unbroken(found.sentence), class_="said"),
        tag("dl", *facts) if facts else "",
        id="answer",
        class_=f"answer {found.verdict.replace(' ', '-')}",
    )


def _unbroken(sentence: str) -> str:
    """No line ends between a number and what it is of."""
    return re.sub(r"p ([=<]) (?=\d)", "p\u00a0\\1\u00a0", re.sub(r"(?<=\d) (?=points|seeds?\b)", "\u00a0", sentence))


def _links(sections: Sequence[Section]) -> Html:
    links = [tag("li", tag("a", part.title, href=f"#{part.name}")) for part in sections]
    return tag("nav", tag("ul", *links), aria_label="Sections")


def _undrawn(reasons: list[str]) -> Html:
    if not reasons:
        return Html("")
    summary = tag("summary", f"{len(reasons)} kind{'s' * (len(reasons) != 1)} of picture not drawn")
    return tag("details", summary, paragraph("Not for this study, or its files do not tell:"), listed(reasons))
