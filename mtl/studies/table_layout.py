"""What of a table is shown, and how: the reader's choice, which changes no number behind it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from mtl.config.documents import read_yaml
from mtl.config.merge import merge
from mtl.config.problems import describe_problems
from mtl.config.settings import Settings
from mtl.config.values import nested, parse_assignment
from mtl.errors import ConfigError

Part = Literal["scores", "differences", "costs"]
Spread = Literal["deviation", "interval", "none"]

SPREADS: Mapping[Spread, str] = {
    "deviation": "mean ± sample standard deviation over seeds",
    "interval": "mean ± half of its 95% interval over seeds alone (t)",
    "none": "means over seeds, their spread not shown",
}


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]


class TableLayout(Settings):
    """``rows`` are tasks and suites, ``columns`` arms (or stages), each in the order wanted; None for all.

    ``names`` are what stands in the table instead of the name of a row or column. ``transpose`` makes arms the rows of
    the scores. Tests and their correction are always those of the whole table.
    """

    rows: Names | None = None
    columns: Names | None = None
    names: dict[str, str] = Field(default_factory=dict)
    decimals: int = Field(default=1, ge=0, le=6)
    spread: Spread = "deviation"
    transpose: bool = False
    parts: Annotated[tuple[Part, ...], BeforeValidator(_as_list), Field(min_length=1)] = (
        "scores",
        "differences",
        "costs",
    )

    def shown(self, name: str) -> str:
        """What stands for ``name``."""
        return self.names.get(name, name)

    def row_order(self, known: Sequence[str]) -> list[str]:
        """The rows wanted, of those there are."""
        return _chosen(self.rows, known)

    def column_order(self, known: Sequence[str]) -> list[str]:
        """The columns wanted, of those there are."""
        return _chosen(self.columns, known)

    def check(self, rows: Sequence[str], columns: Sequence[str]) -> None:
        """ConfigError where what is chosen or renamed is no row or column of any table."""
        for key, wanted, known in (
            ("rows", self.rows or (), rows),
            ("columns", self.columns or (), columns),
            ("names", tuple(self.names), (*rows, *columns)),
        ):
            for name in wanted:
                if name not in known:
                    what = "row or column" if key == "names" else key.removesuffix("s")
                    raise ConfigError(
                        f"{key}: there is no {what} {name!r}; there are {', '.join(dict.fromkeys(known))}"
                    )

    def note(self, left_out: int) -> list[str]:
        """What a reader must know of the choice: what is left out, and what names stand for."""
        notes = []
        if left_out:
            notes.append(
                f"{left_out} row{'' if left_out == 1 else 's'} or column{'' if left_out == 1 else 's'} of the study "
                "not shown; corrections count all of them"
            )
        if self.names:
            notes.append("names: " + ", ".join(f"{shown} is {name}" for name, shown in self.names.items()))
        return notes


def read_layout(path: Path | None, assignments: Sequence[str]) -> TableLayout:
    """The layout in a YAML file, with ``key=value`` settings over it; one ConfigError lists every problem."""
    document: dict[str, Any] = {} if path is None else read_yaml(path)
    for assignment in assignments:
        document = merge(document, nested(*parse_assignment(assignment)))
    try:
        return TableLayout.model_validate(document)
    except ValidationError as error:
        problems = "\n".join(f"  {problem}" for problem in describe_problems(error, root=TableLayout))
        raise ConfigError(f"this is no valid layout of a table:\n{problems}") from error


def _chosen(wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(known if wanted is None else (name for name in wanted if name in known)))
