"""Train and dev of a small task divided anew: all folds but one to train on, that one to score."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mtl.data.part_store import joined_store, part_store
from mtl.data.store import TokenStore
from mtl.data.subsets import FOLDED_BELOW, fold_numbers
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class FoldedSplits:
    """``train`` and ``dev`` as a run with one fold held out sees them, and the files' own splits they come from.

    ``row_ids`` of both count the rows of the file of train, and after these those of dev.
    """

    folds: int
    train: TokenStore
    dev: TokenStore
    file_train: TokenStore
    file_dev: TokenStore


def is_folded(spec: TaskSpec, rows: int) -> bool:
    """Whether a task with so many rows in train and dev together is divided: it is small, and has one dev split."""
    return rows < FOLDED_BELOW and len(spec.dev_splits) == 1 and not spec.evaluate_only


def folded_splits(spec: TaskSpec, splits: Mapping[str, TokenStore], folds: int, held_out: int) -> FoldedSplits | None:
    """The rows of a task's own ``splits``, train and dev by name, with fold ``held_out`` as dev.

    None for a task that keeps its own. ConfigError where its rows cannot be divided so often.
    """
    if not is_folded(spec, sum(splits[name].rows for name in ("train", *spec.dev_splits))):
        return None
    train, dev = splits["train"], splits[spec.dev_splits[0]]
    whole = joined_store([train, dev])
    out = fold_numbers(spec.name, whole.text_keys, folds) == held_out
    files = [train.data_fingerprint, dev.data_fingerprint]
    kept, scored = (
        part_store(whole, np.flatnonzero(chosen), _fingerprint(files, folds, held_out, name))
        for name, chosen in (("train", ~out), ("dev", out))
    )
    return FoldedSplits(folds, kept, scored, train, dev)


def _fingerprint(files: list[str], folds: int, held_out: int, split: str) -> str:
    return hashlib.sha256(json.dumps([files, folds, held_out, split]).encode()).hexdigest()
