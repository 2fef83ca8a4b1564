"""How long the rows of a split are, remembered beside its token store, so that a plan need not load a tokenizer.

A store's own key needs the tokenizer's rules, which take seconds to load. What is kept here has a key of marks that are
told at once: of the data's bytes and of the tokenizer's files.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mtl.atomic import write_text_atomically
from mtl.data.files import file_content, file_path, split_part
from mtl.data.store import TokenStore
from mtl.data.subsets import nested_subset
from mtl.errors import DataError
from mtl.sampling.samplers import IntArray
from mtl.tasks.spec import TaskSpec

_VERSION = 1


@dataclass(frozen=True)
class RowLengths:
    """Sums over rows: tokens, the square of every sequence's tokens, sequences, the square of every row's tokens.

    ``longest``: tokens of the longest sequence.
    """

    rows: int
    tokens: int
    squared: float
    sequences: int
    squared_rows: float
    longest: int


def lengths_of(store: TokenStore) -> RowLengths:
    """The sums over all rows of the store."""
    return _sums(store.sequence_offsets, store.example_offsets, np.arange(store.rows, dtype=np.int64))


def _sums(sequence_offsets: IntArray, example_offsets: IntArray, chosen: IntArray) -> RowLengths:
    lengths = np.diff(sequence_offsets[example_offsets]).astype(np.float64)
    sequences = np.diff(sequence_offsets).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(np.square(sequences))])[example_offsets]
    return RowLengths(
        rows=int(chosen.size),
        tokens=int(lengths[chosen].sum()),
        squared=float(np.diff(sums)[chosen].sum()),
        sequences=int(np.diff(example_offsets)[chosen].sum()),
        squared_rows=float(np.square(lengths[chosen]).sum()),
        # Of the whole store: what is cut to one length is as long as that somewhere.
        longest=int(sequences.max()),
    )


@dataclass(frozen=True)
class LengthsKey:
    """Where the lengths of one split under one tokenizer are kept."""

    spec: TaskSpec
    split: str
    tokenizer_mark: str
    max_length: int
    cache: Path

    def path(self, data_mark: str) -> Path:
        """The file for data of this mark, which need not exist."""
        part = split_part(self.spec, self.split)
        # All that says which texts of the data are joined into a row.
        texts = [self.spec.texts_of(self.split), part.columns, part.official_rows, self.spec.reader]
        parts = [_VERSION, self.spec.name, self.split, self.spec.version, texts, self.tokenizer_mark, data_mark]
        key = hashlib.sha256(json.dumps([*parts, self.max_length]).encode()).hexdigest()
        return self.cache / "lengths" / f"{self.spec.suite}-{self.spec.name.split('/')[1]}-{self.split}-{key[:24]}.json"


def remember_lengths(key: LengthsKey, root: Path | None, store: TokenStore, directory: Path) -> None:
    """Write the store's sums and name its directory, unless that was done before."""
    path = key.path(_data_mark(key, root, store.rows, store.data_fingerprint))
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, json.dumps({**asdict(lengths_of(store)), "store": directory.name}))


def known_lengths(key: LengthsKey, root: Path | None, rows: int, limit: int | None = None) -> RowLengths | None:
    """The sums over a split of so many rows, or over the nested subset of ``limit`` of them; None where not known.

    They are exact for data in files and for generated ones. Rows of a hub's data set are known again by its name and
    their number. No row is read, but for a data file's bytes.
    """
    path = key.path(_data_mark(key, root, rows, None))
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        store = key.cache / "tokens" / document.pop("store")
        found = RowLengths(**document)
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is damaged; delete it") from error
    if limit is None or limit >= found.rows:
        return found
    return _subset(key.spec.name, store, found, limit)


def _subset(task: str, directory: Path, whole: RowLengths, limit: int) -> RowLengths | None:
    """Sums over a subset, from the store's offsets; None where the store was deleted."""
    names = ("sequence_offsets", "example_offsets")
    files = [directory / f"{name}.npy" for name in names]
    if not all(file.is_file() for file in files):
        return None
    sequence_offsets, example_offsets = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
    return _sums(sequence_offsets, example_offsets, nested_subset(task, np.arange(whole.rows, dtype=np.int64), limit))


def _data_mark(key: LengthsKey, root: Path | None, rows: int, fingerprint: str | None) -> str:
    """What tells the split's data from other data; ``fingerprint``: of a file's bytes, where it is known already."""
    if key.spec.reader == "generated":
        # The task's version stands for what the generator gives.
        return "generated"
    path = file_path(key.spec, split_part(key.spec, key.split), root)
    if path is None or not path.is_file():
        return f"hub {key.spec.hub} {rows}"
    return fingerprint or hashlib.sha256(file_content(path) or b"").hexdigest()
