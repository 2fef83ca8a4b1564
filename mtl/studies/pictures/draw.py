"""The pictures by name."""

from pathlib import Path

from mtl.errors import ConfigError
from mtl.studies.pictures import PICTURES
from mtl.studies.pictures.cost import cost_points, draw_cost
from mtl.studies.pictures.forest import draw_forest, forest_points
from mtl.studies.pictures.save import save_picture
from mtl.studies.pictures.sweep import draw_sweep, sweep_points
from mtl.studies.study_table import StudyTable


def draw_picture(picture: str, table: StudyTable, out: Path) -> list[Path]:
    """Draw one of ``PICTURES`` into ``out``; its files, the CSV first. ConfigError for what cannot be drawn."""
    if picture == "forest":
        return save_picture("forest", out, forest_points(table), draw_forest)
    if picture == "cost":
        return save_picture("cost", out, cost_points(table), draw_cost)
    if picture == "sweep":
        return save_picture("sweep", out, sweep_points(table), draw_sweep)
    raise ConfigError(f"there is no picture {picture!r}; there are {', '.join(PICTURES)}")
