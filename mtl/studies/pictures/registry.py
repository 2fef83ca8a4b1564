"""All kinds of pictures by name, and which of them a study gives.

For a page of pictures: ``drawings(source)`` has the numbers and captions of all that apply, ``picture_svg`` of ``save``
draws one from them.
"""

from collections.abc import Mapping

from mtl.errors import ConfigError
from mtl.studies.pictures.cost import cost, draw_cost
from mtl.studies.pictures.curves import curves
from mtl.studies.pictures.draw_curves import draw_curves
from mtl.studies.pictures.draw_fraction import draw_fraction
from mtl.studies.pictures.draw_probabilities import draw_probabilities
from mtl.studies.pictures.draw_transfer import draw_transfer
from mtl.studies.pictures.epochs import draw_epochs, epochs
from mtl.studies.pictures.forest import draw_forest, forest
from mtl.studies.pictures.fraction import fraction
from mtl.studies.pictures.picture import Drawing, Picture, Source
from mtl.studies.pictures.probabilities import probabilities
from mtl.studies.pictures.sweep import draw_sweep, sweep
from mtl.studies.pictures.transfer import transfer

REGISTRY: Mapping[str, Picture] = {
    "forest": Picture(forest, draw_forest),
    "cost": Picture(cost, draw_cost),
    "sweep": Picture(sweep, draw_sweep),
    "transfer": Picture(transfer, draw_transfer),
    "fraction": Picture(fraction, draw_fraction),
    "curves": Picture(curves, draw_curves),
    "probabilities": Picture(probabilities, draw_probabilities),
    "epochs": Picture(epochs, draw_epochs),
}


def find_picture(name: str) -> Picture:
    """The picture called ``name``; ConfigError, which lists them, where there is none."""
    if name not in REGISTRY:
        raise ConfigError(f"there is no picture {name!r}; there are {', '.join(REGISTRY)}")
    return REGISTRY[name]


def drawings(source: Source) -> tuple[dict[str, Drawing], dict[str, str]]:
    """By name, the drawings of every picture that is for this study, and for the others why they are not."""
    found: dict[str, Drawing] = {}
    reasons: dict[str, str] = {}
    for name, picture in REGISTRY.items():
        try:
            found[name] = picture.prepare(source)
        except ConfigError as error:
            reasons[name] = str(error)
    return found, reasons
