"""What a model knows, by phenomenon: the three-way correlation R3 over the rows that carry each tag.

A row with several tags counts in each of them, and once in each coarse category it has a tag of, so counts do not add
up to the number of rows.

Wang et al. 2019, "GLUE", section 4 and table 5; R3 is the K-category correlation of Gorodkin 2004.
"""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.errors import DataError
from mtl.metrics import matthews

COLUMNS = ("category", "tag", "r3", "rows")


@dataclass(frozen=True)
class TagScore:
    """R3, times 100, over the ``rows`` that carry a tag; 0 where their labels or predictions are of one class."""

    tag: str
    r3: float
    rows: int


@dataclass(frozen=True)
class TagDiagnosis:
    """R3 over all rows, by coarse category, and by fine tag, written ``coarse__fine``; both in order of name."""

    overall: TagScore
    coarse: tuple[TagScore, ...]
    fine: tuple[TagScore, ...]

    def table(self) -> list[tuple[str, str, float, int]]:
        """Rows of the columns ``COLUMNS``: all rows first, then coarse categories, then fine tags."""
        levels = (("overall", (self.overall,)), ("coarse", self.coarse), ("fine", self.fine))
        return [(level, score.tag, score.r3, score.rows) for level, scores in levels for score in scores]

    def csv(self) -> str:
        """The table as CSV with a header line."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self.table())
        return text.getvalue()

    def json(self) -> str:
        """The whole as a JSON object."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def diagnose(
    predictions: npt.NDArray[Any], labels: npt.NDArray[Any], tags: Sequence[Iterable[tuple[str, str]]]
) -> TagDiagnosis:
    """Scores of ``predictions`` (N,) against ``labels`` (N,), both class indices, by the tags of each of N rows.

    A tag is a pair of a coarse category and a fine one. DataError for no rows; ValueError where lengths differ.
    """
    if not len(predictions) == len(labels) == len(tags):
        raise ValueError(f"{len(predictions)} predictions, {len(labels)} labels and {len(tags)} rows of tags")
    if len(labels) == 0:
        raise DataError("a diagnostic set without rows has no score; check its file")
    coarse: dict[str, set[int]] = {}
    fine: dict[str, set[int]] = {}
    for row, pairs in enumerate(tags):
        for category, name in pairs:
            coarse.setdefault(category, set()).add(row)
            fine.setdefault(f"{category}__{name}", set()).add(row)

    def score(tag: str, rows: Iterable[int]) -> TagScore:
        chosen = np.array(sorted(rows), dtype=np.int64)
        return TagScore(tag, 100.0 * matthews(predictions[chosen], labels[chosen]), chosen.size)

    return TagDiagnosis(
        score("all", range(len(labels))),
        tuple(score(tag, coarse[tag]) for tag in sorted(coarse)),
        tuple(score(tag, fine[tag]) for tag in sorted(fine)),
    )
