"""The examples on which two models part, with their texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.data.sources import read_rows
from mtl.errors import DataError
from mtl.studies.paired_tests import Pair
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class Flip:
    """One example: its place in the split's file, texts, label, and what either model said, all as the task names them.

    ``texts`` is empty where the split's file is not at hand.
    """

    split: str
    row: int
    texts: tuple[str, ...]
    label: str | float
    first: str | float
    second: str | float


@dataclass(frozen=True)
class Flips:
    """Examples that only the second model gets right, ``gained``, and those that only the first does, ``lost``.

    The counts are of all of them; the lists hold the first in the file's order. Of scores none is right: there the
    examples whose error shrank and grew most come first, and the counts are of all whose error did.
    """

    gained_count: int
    lost_count: int
    gained: tuple[Flip, ...]
    lost: tuple[Flip, ...]


def find_flips(
    spec: TaskSpec, split: str, pair: Pair, rows: npt.NDArray[np.int64], texts: "Texts", limit: int
) -> Flips:
    """At most ``limit`` examples each way; ``rows`` (N,) are the places of the pair's examples in the split's file."""
    if spec.kind == "classification":
        right, right_after = pair.first == pair.labels, pair.second == pair.labels
        gained, lost = np.flatnonzero(~right & right_after), np.flatnonzero(right & ~right_after)
    else:
        change = np.abs(pair.second - pair.labels) - np.abs(pair.first - pair.labels)
        order = np.argsort(change, kind="stable")
        gained, lost = order[change[order] < 0], order[::-1][change[order[::-1]] > 0]

    def flip(place: int) -> Flip:
        row = int(rows[place])
        label, first, second = (_named(spec, values[place]) for values in (pair.labels, pair.first, pair.second))
        return Flip(split, row, texts.of(row), label, first, second)

    shown = [tuple(flip(int(place)) for place in places[:limit]) for places in (gained, lost)]
    return Flips(gained.size, lost.size, *shown)


@dataclass(frozen=True)
class Texts:
    """The texts of a split by place in its file; ``missing`` says why there are none."""

    columns: Sequence[Sequence[str]]
    missing: str | None = None

    def of(self, row: int) -> tuple[str, ...]:
        """The example's texts; none where they are missing."""
        return tuple(column[row] for column in self.columns)


def read_texts(spec: TaskSpec, split: str, data_root: Path | None, sha256: str) -> Texts:
    """The texts of the rows that were scored; without them, and with the reason, where those are not at hand."""
    try:
        found = read_rows(spec, split, data_root)
    except DataError as error:
        # Scores and tests need no text, so a comparison elsewhere than where the runs were made is still one.
        return Texts((), str(error))
    if found.fingerprint != sha256:
        return Texts((), f"{spec.name} {split}: the rows at hand are not those that the runs were scored on")
    return Texts(found.texts)


def _named(spec: TaskSpec, value: Any) -> str | float:
    return float(value) if spec.kind == "regression" else spec.labels[int(value)]
