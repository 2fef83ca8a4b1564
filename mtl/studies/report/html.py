"""HTML that is escaped unless it was made here."""

import html
import re

# What no HTML page may contain: control characters but line breaks, and halves of surrogate pairs.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_EMPTY = frozenset({"br", "img", "link", "meta", "source"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """``text`` as HTML that shows it, and nothing else, also within an attribute; HTML stays as it is."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(_FORBIDDEN.sub("\ufffd", text)))


def tag(name: str, /, *content: str, **attributes: str | None) -> Html:
    """An element. An attribute loses a trailing underscore (``class_``), others become hyphens; None leaves it out."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    shown = "".join(f' {key}="{escaped(value)}"' for key, value in named.items())
    if name in _EMPTY:
        return Html(f"<{name}{shown}>")
    return Html(f"<{name}{shown}>{''.join(map(escaped, content))}</{name}>")


def joined(*parts: str) -> Html:
    """Parts in a row, each on a line of its own."""
    return Html("\n".join(map(escaped, parts)))
