"""The token store: one split of one task, tokenised once, flat and memory-mapped."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mtl.errors import DataError
from mtl.sampling.samplers import IntArray

ARRAYS = ("tokens", "types", "sequence_offsets", "example_offsets", "labels", "text_keys")
DESCRIPTION = ("fingerprint", "data_fingerprint", "truncated", "empty", "dropped_lines")
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TokenStore:
    """N examples of S sequences of T tokens in all.

    ``tokens`` (T,) and ``types`` (T,) unsigned; ``sequence_offsets`` (S+1,) into tokens; ``example_offsets`` (N+1,)
    into sequences; ``labels`` (N,) int64 classes or float32 scores, (0,) where the split has none; ``text_keys``
    (N, texts) 64-bit hashes that are equal where texts are. ``fingerprint`` identifies data, tokenizer, template and
    length. ``truncated`` examples were cut to the maximum length, ``empty`` ones have a text without a word, and
    ``dropped_lines`` of an official file were malformed (see mtl.data.tsv). ``row_ids`` (N,) say which rows of a split
    those of a store are that holds a part (see mtl.data.part_store); None where it holds all, in their order.
    """

    tokens: npt.NDArray[Any]
    types: npt.NDArray[Any]
    sequence_offsets: IntArray
    example_offsets: IntArray
    labels: npt.NDArray[Any]
    text_keys: npt.NDArray[np.uint64]
    fingerprint: str
    data_fingerprint: str
    truncated: int
    empty: int
    dropped_lines: int = 0
    row_ids: IntArray | None = None

    @property
    def rows(self) -> int:
        """Number of examples."""
        return int(self.example_offsets.size - 1)

    @property
    def labelled(self) -> bool:
        """Whether every example has a label."""
        return self.labels.size == self.rows and self.rows > 0

    def lengths(self) -> IntArray:
        """Tokens of every example (N,)."""
        return np.diff(self.sequence_offsets[self.example_offsets])


def open_store(directory: Path) -> TokenStore:
    """Map the store's arrays; DataError where a file is missing or its checksum differs from the manifest's."""
    manifest = _manifest(directory)
    for name, expected in manifest["sha256"].items():
        path = directory / name
        if not path.is_file() or file_sha256(path) != expected:
            raise DataError(f"the token store file {path} is missing or damaged; delete {directory} to have it rebuilt")
    arrays = {name: np.load(directory / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS}
    return TokenStore(**arrays, **{name: manifest[name] for name in DESCRIPTION})


def _manifest(directory: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        raise DataError(
            f"{directory / MANIFEST} is missing or damaged; delete {directory} to have it rebuilt"
        ) from error
    return manifest


def file_sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
