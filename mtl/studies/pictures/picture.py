"""What a picture is: from scored arms to numbers and a caption, and from the numbers to a figure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtl.errors import ConfigError
from mtl.studies.comparable import Kind
from mtl.studies.scored_arms import Arm
from mtl.studies.study_table import StudyTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Source:
    """What pictures are drawn from: arms, and where a baseline was named, their table.

    ``allowed`` are the differences between arms that whoever asks for pictures accepts, as for the table.
    """

    arms: tuple[Arm, ...]
    table: StudyTable | None = None
    allowed: Collection[Kind] = ()

    def compared(self) -> StudyTable:
        """The table; ConfigError where there is none."""
        if self.table is None:
            raise ConfigError("this picture compares arms with a baseline, and none is named: add --baseline ARM")
        return self.table


@dataclass(frozen=True)
class Drawing:
    """The numbers of one picture of one study: ``points`` are dataclasses of one type, a line of the CSV each.

    ``caption`` says what is drawn and how far it can be trusted, in whole sentences for whoever prints the picture;
    ``missing`` what the study's files do not tell and the picture therefore lacks, a line each.
    """

    points: Sequence[Any]
    caption: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """One kind of picture.

    ``prepare`` raises ConfigError, which says why, where the picture is not for this study. ``draw`` gets an empty
    figure, the points and the width in inches, and sets the height.
    """

    prepare: Callable[[Source], Drawing]
    draw: "Callable[[Figure, Sequence[Any], float], None]"
