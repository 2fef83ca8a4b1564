"""Tokenising a split into a token store: once, atomically, whoever comes first."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from mtl.atomic import sync_directory, write_text_atomically
from mtl.data.lengths import LengthsKey, remember_lengths
from mtl.data.sources import Rows, read_rows, source_fingerprint
from mtl.data.store import ARRAYS, DESCRIPTION, MANIFEST, TokenStore, file_sha256, open_store
from mtl.errors import DataError
from mtl.tasks.spec import TaskSpec

if TYPE_CHECKING:
    from tokenizers import Encoding

    from mtl.data.tokenizer import TextTokenizer

_VERSION = 1
"""Part of every key: raised when the same inputs would give other arrays."""
_CHUNK = 2048

logger = logging.getLogger("mtl")


def load_store(
    spec: TaskSpec, split: str, tokenizer: "TextTokenizer", *, max_length: int, root: Path | None, cache: Path
) -> TokenStore:
    """The token store of a split, from the cache where its key is known, else tokenised now.

    The key covers the data's bytes, the task's columns and labels, tokenizer, maximum length and code version. Safe
    when several processes ask at once: one builds, the others wait and read. Raises what ``read_rows`` raises, and
    DataError for a split without rows or a damaged store.
    """
    from filelock import FileLock

    data = source_fingerprint(spec, split, root)
    key = _key(spec, split, tokenizer.fingerprint, data, max_length)
    directory = cache / "tokens" / f"{spec.suite}-{spec.name.split('/')[1]}-{split}-{key[:24]}"
    _make_parent(directory)
    with FileLock(f"{directory}.lock"):
        if not (directory / MANIFEST).is_file():
            rows = read_rows(spec, split, root)
            if rows.fingerprint != data:
                raise DataError(f"{spec.name} {split}: its file changed while it was read; start again")
            build_store(directory, rows, tokenizer, max_length, fingerprint=key, description=f"{spec.name} {split}")
    store = open_store(directory)
    if tokenizer.mark is not None:
        remember_lengths(LengthsKey(spec, split, tokenizer.mark, max_length, cache), root, store, directory)
    return store


def _make_parent(directory: Path) -> None:
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{directory.parent} cannot be made to keep tokenised rows in ({error.strerror}): set data.cache or "
            "MTL_CACHE_DIR to a directory that may be written"
        ) from error


def _key(spec: TaskSpec, split: str, tokenizer: str, data: str, max_length: int) -> str:
    part = spec.splits[split]
    columns = [spec.texts_of(split), spec.label_column, part.columns, part.labelled, part.official_rows]
    if spec.reader not in ("tsv", "generated"):
        # The same bytes are other rows in another format; what was there before the formats were keeps its key.
        columns.append(spec.reader)
    labels = [spec.labels, sorted(spec.label_values.items()), spec.score_range]
    parts = [_VERSION, spec.name, split, spec.version, spec.kind, columns, labels, tokenizer, data, max_length]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def build_store(
    directory: Path, rows: Rows, tokenizer: "TextTokenizer", max_length: int, *, fingerprint: str, description: str
) -> None:
    """Make ``directory`` the token store of ``rows``, whole or not at all; DataError where there are none.

    The caller sees to it that no other process builds the same one, and to a ``fingerprint`` that means all of it.
    """
    if len(rows) == 0:
        raise DataError(f"{description}: there are no rows to tokenise; replace its file, or leave the task out")
    arrays, truncated = _tokenise(rows, tokenizer, max_length, description)
    arrays["labels"] = np.zeros(0, dtype=np.int64) if rows.labels is None else rows.labels
    arrays["text_keys"] = np.stack([_text_keys(column) for column in rows.texts], axis=1)
    empty = sum(any(not text.strip() for text in texts) for texts in zip(*rows.texts, strict=True))
    _log_oddities(description, max_length, truncated, empty, rows.dropped_lines)
    described = (fingerprint, rows.fingerprint, truncated, empty, rows.dropped_lines)
    _write(directory, arrays, dict(zip(DESCRIPTION, described, strict=True)))


def _log_oddities(description: str, max_length: int, truncated: int, empty: int, dropped_lines: int) -> None:
    if truncated:
        logger.info("%s: %d examples cut to %d tokens", description, truncated, max_length)
    if empty:
        logger.info("%s: %d examples with an empty text, kept", description, empty)
    if dropped_lines:
        logger.info("%s: %d malformed lines of the official file left out", description, dropped_lines)


def _write(directory: Path, arrays: dict[str, npt.NDArray[Any]], described: dict[str, Any]) -> None:
    """Make ``directory`` the store of ``arrays``, whole or not at all; the caller holds the lock."""
    temporary = directory.with_name(f".{directory.name}.building")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for name in ARRAYS:
        with (temporary / f"{name}.npy").open("wb") as file:
            np.save(file, arrays[name], allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
    checksums = {f"{name}.npy": file_sha256(temporary / f"{name}.npy") for name in ARRAYS}
    write_text_atomically(temporary / MANIFEST, json.dumps({**described, "sha256": checksums}, indent=1))
    # What is there without a manifest was left half-built by a process that died.
    shutil.rmtree(directory, ignore_errors=True)
    temporary.rename(directory)
    sync_directory(directory.parent)


def _tokenise(
    rows: Rows, tokenizer: "TextTokenizer", max_length: int, description: str
) -> tuple[dict[str, npt.NDArray[Any]], int]:
    token_type: type[np.unsignedinteger[Any]] = np.uint16 if tokenizer.vocabulary_size <= 2**16 else np.uint32
    tokens, types, lengths, truncated = [], [], [], 0
    for encoding in _encodings(rows, tokenizer, max_length, description):
        tokens.append(np.array(encoding.ids, dtype=token_type))
        types.append(np.array(encoding.type_ids, dtype=np.uint8))
        lengths.append(len(encoding.ids))
        truncated += bool(encoding.overflowing)
    arrays: dict[str, npt.NDArray[Any]] = {
        "tokens": np.concatenate(tokens),
        "types": np.concatenate(types),
        "sequence_offsets": np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        "example_offsets": np.arange(len(lengths) + 1, dtype=np.int64),
    }
    return arrays, truncated


def _encodings(rows: Rows, tokenizer: "TextTokenizer", max_length: int, description: str) -> "Iterator[Encoding]":
    first, second = rows.texts[0], rows.texts[1] if len(rows.texts) > 1 else None
    with tqdm(total=len(first), desc=f"tokenising {description}", unit="rows", disable=None, leave=False) as progress:
        for start in range(0, len(first), _CHUNK):
            part = slice(start, start + _CHUNK)
            # The tokenizer's own threads use all cores within a chunk.
            encodings = tokenizer.encode(first[part], None if second is None else second[part], max_length)
            progress.update(len(encodings))
            yield from encodings


def _text_keys(texts: list[str]) -> npt.NDArray[np.uint64]:
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
