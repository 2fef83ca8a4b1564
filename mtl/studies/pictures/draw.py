"""The pictures by name."""

from pathlib import Path

from mtl.errors import ConfigError
from mtl.studies.pictures import PICTURES
from mtl.studies.pictures.cost import cost_points, draw_cost
from mtl.studies.pictures.forest import draw_forest, forest_points
from mtl.studies.pictures.save import save_picture
from mtl.studies.study_table import StudyTable


def draw_picture(picture: str, table: StudyTable, out: Path) -> list[Path]:
    """Draw one of ``PICTURES`` into ``out``; its files, the CSV first. ConfigError for what cannot be drawn."""
    if picture == "forest":
        return save_picture("forest", out, forest_points(table), draw_forest)
    if picture == "cost":
        return save_picture("cost", out, cost_points(table), draw_cost)
    raise ConfigError(f"there is no picture {picture!r}; there are {', '.join(PICTURES)}")
