"""What every reader gives: columns of text by name, and where each row stands."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mtl.errors import DataError


@dataclass(frozen=True)
class Table:
    """Columns by name, all equally long, with the line (or row, in a format without lines) of each row, from 1."""

    columns: dict[str, list[str]]
    line_numbers: list[int]
    dropped_lines: int = 0
    unit: Literal["line", "row"] = "line"


def column_positions(header: Sequence[str], wanted: Sequence[str], source: object) -> dict[str, int]:
    """The place of each wanted column; DataError, naming ``source``, for one that is absent or stands several times."""
    for name in wanted:
        times = list(header).count(name)
        if times != 1:
            fault = "is absent" if times == 0 else f"stands {times} times"
            raise DataError(
                f"{source}: column {name!r} {fault} among the columns {', '.join(header)}; "
                "this is not the file that the task describes, or its header line is missing"
            )
    return {name: list(header).index(name) for name in wanted}


def text_cell(value: Any, column: str, where: str) -> str:
    """A text as it stands; DataError for what is no text, or holds half a character."""
    if not isinstance(value, str):
        raise DataError(f"{where}: column {column!r} holds {_shown(value)}, which is no text; mend or remove the row")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: column {column!r} holds half a character ({error.reason}); mend the row") from error
    return value


def label_cell(value: Any, column: str, where: str) -> str:
    """A label or score as text: a number as it is usually written, true and false in small letters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise DataError(f"{where}: column {column!r} holds {_shown(value)}, which is neither text nor a number")


def content_fingerprint(columns: dict[str, list[str]]) -> str:
    """The sha256 of the columns' texts, for rows that stand in no file of which one could be taken."""
    return hashlib.sha256(json.dumps(columns, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.60}"
