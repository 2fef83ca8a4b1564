"""The rows that a run trains on and scores: every task's token stores, loaded once for all stages."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mtl.config.locations import cache_directory, data_root
from mtl.config.run import RunConfig, StageSettings
from mtl.data.build_store import load_store
from mtl.data.folds import FoldedSplits, folded_splits
from mtl.data.shuffled_labels import with_shuffled_labels
from mtl.data.store import TokenStore
from mtl.data.streams import TaskStream
from mtl.data.subsets import FOLDED_BELOW, WHOLE, Portion, nested_subset, split_holdout
from mtl.data.tokenizer import TextTokenizer
from mtl.errors import ConfigError, DataError
from mtl.sampling.samplers import IntArray
from mtl.stages.sizes import most_dev_rows, train_portion
from mtl.tasks.spec import TaskSpec

logger = logging.getLogger("mtl")

Description = dict[str, dict[str, int | str | None]]
"""Facts on the splits of a task, by split."""


@dataclass(frozen=True)
class TaskData:
    """One task's training split and dev splits, and how much of them is used.

    ``max_dev_rows`` is of each dev split. ``labels_shuffled``: the labels of ``train`` are not those of its rows.
    ``folded`` says what the splits were made of where they are folds of a task's train and dev together.
    """

    spec: TaskSpec
    train: TokenStore
    dev: Mapping[str, TokenStore]
    portion: Portion = WHOLE
    max_dev_rows: int | None = None
    labels_shuffled: bool = False
    folded: FoldedSplits | None = None

    def holdout(self) -> IntArray:
        """Training rows that are kept for selection where a stage selects on a holdout; DataError if there are none."""
        rows = split_holdout(self.spec.name, self.train.text_keys)[1]
        if rows.size == 0:
            raise DataError(f"{self.spec.name} has too few rows to hold some out; set selection.on=last")
        return rows

    def selection_rows(self) -> IntArray:
        """The part of the holdout that snapshots are scored on: cut as what is trained on is."""
        rows = self.holdout()
        return nested_subset(self.spec.name, rows, self.portion.of(rows.size))

    def scored_rows(self, split: str) -> IntArray:
        """The rows of a dev split that are scored, in order; fewer are part of more."""
        rows = np.arange(self.dev[split].rows, dtype=np.int64)
        return nested_subset(self.spec.name, rows, self.max_dev_rows)

    def stream(self, seed: int, settings: StageSettings) -> TaskStream:
        """The rows to train on in random order: all of train, less the holdout if one is kept, cut to its portion."""
        rows = np.arange(self.train.rows, dtype=np.int64)
        if settings.selection.on == "holdout":
            rows = np.setdiff1d(rows, self.holdout())
        rows = nested_subset(self.spec.name, rows, self.portion.of(rows.size))
        if rows.size == 0:
            raise DataError(
                f"{self.spec.name} has no row left to train on; raise data.max_train_rows, or use more data"
            )
        return TaskStream(self.spec.name, seed, rows, self.train.lengths()[rows])

    def sampler_size(self, settings: StageSettings, stream: TaskStream) -> int:
        """The size that drives the task's share: rows in hand, or the official release's."""
        if settings.sampling.sizes == "actual":
            return stream.size
        official = self.spec.splits["train"].official_rows
        if official is None:
            raise ConfigError(f"{self.spec.name} has no official row count; set sampling.sizes=actual")
        return official

    @property
    def train_rows(self) -> int:
        """Rows of train that are used; a holdout counts as used."""
        return self.portion.of(self.train.rows)

    def official_rows(self, split: str) -> int | None:
        """Rows of the official release's split; None where it has no such split, as it has no folds."""
        return None if self.folded is not None else self.spec.splits[split].official_rows

    @property
    def files(self) -> dict[str, TokenStore]:
        """The splits as the task has them."""
        if self.folded is None:
            return {"train": self.train, **self.dev}
        return {"train": self.folded.file_train, **dict.fromkeys(self.dev, self.folded.file_dev)}

    @property
    def partial(self) -> bool:
        """Whether a split that is trained on or scored, or was divided, has other rows than the official release, or
        not all at hand.
        """
        official = {name: self.spec.splits[name].official_rows for name in self.files}
        train_cut = official["train"] is not None and self.train_rows < self.train.rows
        dev_cut = any(self.scored_rows(name).size < store.rows for name, store in self.dev.items())
        return train_cut or dev_cut or any(official[n] not in (None, store.rows) for n, store in self.files.items())

    def describe(self) -> Description:
        """Rows in hand and official, fingerprint, and how many examples were cut or have an empty text, by split.

        Of the files: all folds of a task are made of the same.
        """
        return _describe(self.spec, self.files)


@dataclass(frozen=True)
class EvaluatedData:
    """The dev splits of a task that is only evaluated, with the head of another."""

    spec: TaskSpec
    dev: Mapping[str, TokenStore]

    def official_rows(self, split: str) -> int | None:
        """Rows of the official release's split; None where it has none."""
        return self.spec.splits[split].official_rows

    def scored_rows(self, split: str) -> IntArray:
        """All rows of the split: only tasks that are trained may be scored on fewer."""
        return np.arange(self.dev[split].rows, dtype=np.int64)

    @property
    def partial(self) -> bool:
        """Whether a split has other rows than the official release."""
        return any(self.spec.splits[name].official_rows not in (None, store.rows) for name, store in self.dev.items())

    def describe(self) -> Description:
        """As for a task that is trained."""
        return _describe(self.spec, self.dev)


def load_evaluated_data(
    config: RunConfig, specs: Sequence[TaskSpec], tokenizer: TextTokenizer, check: Callable[[], None]
) -> dict[str, EvaluatedData]:
    """Token stores of the tasks that are only evaluated, by name; errors as of :func:`load_task_data`."""
    root, cache = data_root(config), cache_directory(config)
    data = {}
    for spec in specs:
        check()
        stores = {split: _load(config, spec, split, tokenizer, root, cache) for split in spec.dev_splits}
        data[spec.name] = EvaluatedData(spec, stores)
    return data


def load_task_data(
    config: RunConfig, specs: Sequence[TaskSpec], tokenizer: TextTokenizer, check: Callable[[], None]
) -> dict[str, TaskData]:
    """Token stores of all tasks by name, built where they are not cached; ``check`` runs between splits.

    With ``splits.kfold`` train and dev of small tasks are folds. Raises DataError for missing or malformed data, for an
    empty split, and for labels that are missing; ConfigError for folds that cannot be.
    """
    root, cache = data_root(config), cache_directory(config)
    data = {}
    for spec in specs:
        stores = {}
        for split in ("train", *spec.dev_splits):
            check()
            stores[split] = _load(config, spec, split, tokenizer, root, cache)
        folded, shuffled = _folded(config, spec, stores), spec.name in config.data.shuffled_labels
        train = stores["train"] if folded is None else folded.train
        if shuffled:
            logger.warning(
                "%s is trained on shuffled labels: a control, of which no score is one of the task", spec.name
            )
            train = with_shuffled_labels(train, spec.name, config.seed)
        data[spec.name] = TaskData(
            spec,
            train,
            {name: stores[name] if folded is None else folded.dev for name in spec.dev_splits},
            train_portion(config, spec.name),
            most_dev_rows(config, spec.name),
            shuffled,
            folded,
        )
    if config.splits.kfold is not None and all(task.folded is None for task in data.values()):
        raise ConfigError(
            f"splits.kfold is {config.splits.kfold}, but no task of this run is divided into folds: they have "
            f"{FOLDED_BELOW:,} examples or more, or several dev splits; leave splits out"
        )
    return data


def _folded(config: RunConfig, spec: TaskSpec, stores: Mapping[str, TokenStore]) -> FoldedSplits | None:
    folds = config.splits.kfold
    return None if folds is None else folded_splits(spec, stores, folds, config.splits.fold)


def _load(
    config: RunConfig, spec: TaskSpec, split: str, tokenizer: TextTokenizer, root: Path | None, cache: Path
) -> TokenStore:
    store = load_store(spec, split, tokenizer, max_length=config.data.max_length, root=root, cache=cache)
    if not store.labelled:
        raise DataError(f"{spec.name}, split {split}: it has no labelled rows, which training and scoring need")
    official = spec.splits[split].official_rows
    if official is not None and official != store.rows:
        logger.warning("%s %s: %d rows, the official release has %d (partial)", spec.name, split, store.rows, official)
    return store


def _describe(spec: TaskSpec, stores: Mapping[str, TokenStore]) -> Description:
    return {
        name: {
            "rows": store.rows,
            "official_rows": spec.splits[name].official_rows,
            "sha256": store.data_fingerprint,
            "truncated": store.truncated,
            "empty": store.empty,
            "dropped_lines": store.dropped_lines,
        }
        for name, store in stores.items()
    }
