"""Lines of single, joint and fine-tuned models, the same in every picture whose lines are ways of training."""

from collections.abc import Mapping
from dataclasses import dataclass

from mtl.records import StageName
from mtl.studies.pictures.save import COLOURS


@dataclass(frozen=True)
class StageLine:
    """What a stage is called in a legend, the dashes of its line and its colour."""

    name: str
    dashes: str
    colour: str


STAGE_LINES: Mapping[StageName, StageLine] = {
    "joint": StageLine("joint", "-", COLOURS[0]),
    "finetune": StageLine("joint + fine-tuned", "--", COLOURS[1]),
    "single": StageLine("single", ":", COLOURS[2]),
}
