"""The pictures by name."""

from dataclasses import dataclass
from pathlib import Path

from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.pictures.registry import find_picture
from mtl.studies.pictures.save import save_picture


@dataclass(frozen=True)
class Drawn:
    """The files of a picture, the CSV first, and what was drawn."""

    files: tuple[Path, ...]
    drawing: Drawing


def draw_picture(name: str, source: Source, out: Path) -> Drawn:
    """Draw the picture called ``name`` into the folder ``out``. ConfigError for what cannot be drawn."""
    picture = find_picture(name)
    drawing = picture.prepare(source)
    return Drawn(tuple(save_picture(name, out, drawing.points, picture.draw)), drawing)
