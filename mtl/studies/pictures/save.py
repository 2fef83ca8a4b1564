"""A picture as files: SVG, PDF and PNG in the widths of a column and of a page, and its numbers as CSV.

Equal numbers give equal files with the same version of matplotlib: no date is written, and names inside are fixed.
"""

import csv
import importlib.util
import io
from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtl.atomic import write_bytes_atomically, write_text_atomically
from mtl.errors import ConfigError
from mtl.studies.numbers import csv_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = {"column": 3.3, "page": 6.8}
"""Inches: a column, and the text width, of a two-column page."""

# Okabe and Ito, "Color universal design": told apart with every common kind of colour blindness, and by the marker.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
# For areas side by side there may be more: Okabe and Ito's and more; dashes in black are seen on all of them.
AREAS = (
    *("#0072B2", "#E69F00", "#009E73", "#F0E442", "#D55E00", "#56B4E9", "#CC79A7", "#999999"),
    *("#882255", "#DDCC77", "#332288", "#AADDCC"),
)
GREY, BAND = "#808080", "#D9D9D9"

UNCORRECTED = "(95% intervals over seeds, uncorrected)"

# Any: newer releases of matplotlib type the names of settings, older ones do not.
SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "pdf.fonttype": 42,
    "svg.hashsalt": "mtl",
}
_RESOLUTION = 300
# No date in any of them.
_FORMATS: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def save_picture(
    name: str, out: Path, numbers: Sequence[Any], draw: "Callable[[Figure, Sequence[Any], float], None]"
) -> list[Path]:
    """Write ``name`` with its CSV into the folder ``out``, which is made where it is missing; the paths written.

    ``numbers`` are dataclasses, a line each; ``draw`` gets an empty figure, the numbers and the width in inches, and
    sets the height. ConfigError where matplotlib is not installed.
    """
    _check_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    written = [out / f"{name}.csv"]
    write_text_atomically(written[0], picture_csv(numbers))
    for width_name, width in WIDTHS.items():
        for suffix, content in _rendered(numbers, draw, width, tuple(_FORMATS)).items():
            written.append(out / f"{name}-{width_name}.{suffix}")
            write_bytes_atomically(written[-1], content)
    return written


def picture_svg(
    numbers: Sequence[Any], draw: "Callable[[Figure, Sequence[Any], float], None]", width: float = WIDTHS["page"]
) -> str:
    """The picture alone, as the text of an SVG file; arguments and errors as of :func:`save_picture`."""
    _check_matplotlib()
    return _rendered(numbers, draw, width, ("svg",))["svg"].decode("utf-8")


def _check_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("pictures need the package matplotlib: pip install 'mtl[plot]'")


def _rendered(
    numbers: Sequence[Any],
    draw: "Callable[[Figure, Sequence[Any], float], None]",
    width: float,
    formats: Sequence[str],
) -> dict[str, bytes]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, width), layout="constrained")
        draw(figure, numbers, width)
        found = {}
        for name in formats:
            content = io.BytesIO()
            figure.savefig(content, format=name, dpi=_RESOLUTION, metadata=_FORMATS[name])
            found[name] = content.getvalue()
    return found


def style(place: int) -> tuple[str, str]:
    """The colour and the marker of the arm at ``place``; no two of the first 49 arms have both alike."""
    return COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def picture_csv(numbers: Sequence[Any]) -> str:
    """The numbers as the CSV file holds them, a line each under a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in fields(numbers[0])])
    writer.writerows([_cell(value) for value in astuple(each)] for each in numbers)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " ".join(str(_cell(each)) for each in value)
    if isinstance(value, float):
        return csv_number(value)
    return int(value) if isinstance(value, bool) else value
