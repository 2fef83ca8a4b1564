"""Every picture that is for a study, as an element of a page, for a wide and for a narrow screen."""

import base64
import re
from collections.abc import Collection

from mtl.errors import ConfigError
from mtl.studies.comparable import Kind
from mtl.studies.pictures import PICTURES
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.registry import REGISTRY, drawings
from mtl.studies.pictures.save import WIDTHS, picture_svg
from mtl.studies.report.content import Content
from mtl.studies.report.html import Html, tag

NARROW = "(max-width: 640px)"
_PREAMBLE = re.compile(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|<metadata>.*?</metadata>\s*", re.DOTALL)


def figures(content: Content, allowed: Collection[Kind] = ()) -> tuple[list[Html], list[str]]:
    """The pictures with their captions, and for each that is not there the reason."""
    if not content.arms:
        return [], []
    found, reasons = drawings(Source(content.arms, content.table, allowed))
    shown: list[Html] = []
    for name, drawing in found.items():
        try:
            shown.append(_figure(name, drawing))
        except ConfigError as error:
            reasons[name] = str(error)
    return shown, [f"{PICTURES[name].capitalize()}: {reason}" for name, reason in reasons.items()]


def _figure(name: str, drawing: Drawing) -> Html:
    draw = REGISTRY[name].draw
    wide, narrow = (_data_uri(picture_svg(drawing.points, draw, WIDTHS[width])) for width in ("page", "column"))
    title = PICTURES[name].capitalize()
    lines = [tag("span", f" Missing: {line}.", class_="quiet") for line in drawing.missing]
    return tag(
        "figure",
        tag(
            "picture",
            tag("source", media=NARROW, srcset=narrow),
            tag("img", src=wide, alt=f"{title}. {drawing.caption}", loading="eager"),
        ),
        tag("figcaption", tag("strong", f"{title}."), f" {drawing.caption}", *lines),
        id=f"picture-{name}",
    )


def _data_uri(svg: str) -> str:
    """The picture within the page itself; what names the program that drew it is left out."""
    return "data:image/svg+xml;base64," + base64.b64encode(_PREAMBLE.sub("", svg).encode()).decode()
