"""The mini suite: six tasks generated from a small world with exact labels, the same rows on every machine.

For a first run without any data, for tests, and for checking that transfer between tasks is real: ``mini/entail2`` has
too few rows to teach its own words, which ``mini/entail3`` teaches. The world and its sentences stand in
``mini_world``, pairs of clauses in ``mini_pairs``, the tasks in ``mini_rows``.

Guarantees: rows are a function of (task, split) alone; labels (bands of one point for ``mini/similarity``) are
equally frequent in every split, to within one row; no text or pair of texts, in either order, stands in two splits, of
whatever tasks, nor twice in one.
"""

import zlib
from dataclasses import dataclass
from functools import cache
from typing import Final

from mtl.errors import ConfigError
from mtl.random_streams import generator
from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_rows import (
    Row,
    RowMaker,
    acceptability_row,
    answerable_row,
    entail2_row,
    entail3_row,
    paraphrase_row,
    similarity_row,
)
from mtl.tasks.mini_world import all_words
from mtl.tasks.spec import MetricName, SplitSpec, TaskSpec

WORLD_SEED: Final = 20240229

# Which quarters of all possible texts belong to which split.
_QUARTERS: Final = {"train": (0, 1), "dev": (2,), "test": (3,)}


def _splits(train: int, dev: int, test: int) -> dict[str, SplitSpec]:
    return {
        "train": SplitSpec(file="", official_rows=train),
        "dev": SplitSpec(file="", official_rows=dev),
        "test": SplitSpec(file="", official_rows=test, labelled=False),
    }


def _classification(
    name: str,
    texts: tuple[str, ...],
    labels: tuple[str, ...],
    rows: tuple[int, int, int],
    *,
    metrics: tuple[MetricName, ...] = ("accuracy",),
    positive: str | None = None,
) -> TaskSpec:
    return TaskSpec(
        name=name,
        kind="classification",
        reader="generated",
        directory="",
        text_columns=texts,
        label_column="label",
        labels=labels,
        positive_label=positive,
        metrics=metrics,
        primary=metrics,
        splits=_splits(*rows),
    )


_ENTAIL3 = _classification(
    "mini/entail3", ("premise", "hypothesis"), ("entailment", "neutral", "contradiction"), (10000, 600, 300)
)
_ENTAIL2 = _classification("mini/entail2", ("premise", "hypothesis"), ("entailment", "not_entailment"), (200, 400, 200))
_PARAPHRASE = _classification(
    "mini/paraphrase",
    ("sentence1", "sentence2"),
    ("different", "same"),
    (2000, 400, 200),
    metrics=("accuracy", "f1"),
    positive="same",
)
_SIMILARITY = TaskSpec(
    name="mini/similarity",
    kind="regression",
    reader="generated",
    directory="",
    text_columns=("sentence1", "sentence2"),
    label_column="score",
    score_range=(0.0, 5.0),
    metrics=("pearson", "spearman"),
    primary=("pearson", "spearman"),
    splits=_splits(800, 400, 200),
)
_ACCEPTABILITY = _classification(
    "mini/acceptability", ("sentence",), ("unacceptable", "acceptable"), (1000, 400, 200), metrics=("matthews",)
)
_ANSWERABLE = _classification(
    "mini/answerable", ("question", "sentence"), ("answerable", "not_answerable"), (2000, 400, 200)
)


@dataclass(frozen=True)
class _Recipe:
    spec: TaskSpec
    make: RowMaker
    targets: tuple[str, ...]
    """What rows are made for, in turn: each label, or each band of scores."""


_RECIPES: Final = {
    recipe.spec.name: recipe
    for recipe in (
        _Recipe(_ENTAIL3, entail3_row, _ENTAIL3.labels),
        _Recipe(_ENTAIL2, entail2_row, _ENTAIL2.labels),
        _Recipe(_PARAPHRASE, paraphrase_row, _PARAPHRASE.labels),
        _Recipe(_SIMILARITY, similarity_row, ("0", "1", "2", "3", "4")),
        _Recipe(_ACCEPTABILITY, acceptability_row, _ACCEPTABILITY.labels),
        _Recipe(_ANSWERABLE, answerable_row, _ANSWERABLE.labels),
    )
}
SPECS: Final[tuple[TaskSpec, ...]] = tuple(recipe.spec for recipe in _RECIPES.values())


def generate(task: str, split: str) -> dict[str, list[str]]:
    """The rows of one split, by column, as text: what a reader of a file with these columns would give.

    ``task`` is a name such as ``mini/entail3``. The label column holds label names, or a score with three decimals; it
    is absent where the split is not labelled. Raises ConfigError for an unknown task or split.
    """
    if task not in _RECIPES:
        raise ConfigError(f"no generated task is called {task!r}; there are {', '.join(_RECIPES)}")
    recipe = _RECIPES[task]
    if split not in recipe.spec.splits:
        raise ConfigError(f"{task} has no split {split!r}; it has {', '.join(recipe.spec.splits)}")
    rows = _rows(task, split)
    texts = recipe.spec.text_columns
    columns = texts if split == "test" else (*texts, recipe.spec.label_column)
    return {name: [row[place] for row in rows] for place, name in enumerate(columns)}


def vocabulary() -> tuple[str, ...]:
    """Every word that a mini sentence can contain, sorted; sentences have no punctuation."""
    return all_words()


@cache
def _rows(task: str, split: str) -> list[Row]:
    """The rows of a split, drawn once in a process: fingerprints and token stores both ask for them."""
    return _draw_rows(_RECIPES[task], split)


def _draw_rows(recipe: _Recipe, split: str) -> list[Row]:
    """As many rows as the split has, made for its targets in turn, of texts that fall to this split; then shuffled."""
    stream = generator(WORLD_SEED, recipe.spec.name, split)
    draws = Draws(stream)
    count = recipe.spec.splits[split].official_rows or 0
    quarters = _QUARTERS[split]
    rows: dict[tuple[str, ...], Row] = {}
    while len(rows) < count:
        row = recipe.make(draws, recipe.targets[len(rows) % len(recipe.targets)])
        texts = tuple(sorted(row[: len(recipe.spec.text_columns)]))
        if zlib.crc32("\t".join(texts).encode()) % 4 in quarters:
            rows.setdefault(texts, row)
    ordered = list(rows.values())
    return [ordered[place] for place in stream.permutation(count)]
