"""Token stores made of others: several splits as one, and some rows of one."""

from collections.abc import Sequence

import numpy as np

from mtl.data.store import TokenStore
from mtl.sampling.samplers import IntArray


def joined_store(stores: Sequence[TokenStore]) -> TokenStore:
    """All rows of ``stores``, which are of one task and tokenizer, one store after the other.

    Its fingerprints are those of the first and mean nothing.
    """
    first = stores[0]
    return TokenStore(
        tokens=np.concatenate([store.tokens for store in stores]),
        types=np.concatenate([store.types for store in stores]),
        sequence_offsets=_joined_offsets([store.sequence_offsets for store in stores]),
        example_offsets=_joined_offsets([store.example_offsets for store in stores]),
        labels=np.concatenate([store.labels for store in stores]),
        text_keys=np.concatenate([store.text_keys for store in stores]),
        fingerprint=first.fingerprint,
        data_fingerprint=first.data_fingerprint,
        truncated=sum(store.truncated for store in stores),
        empty=sum(store.empty for store in stores),
        dropped_lines=sum(store.dropped_lines for store in stores),
    )


def part_store(store: TokenStore, rows: IntArray, fingerprint: str) -> TokenStore:
    """The given ``rows`` (N,) of a labelled store, in memory; ``fingerprint`` identifies them.

    What was counted over all rows (``truncated``, ``empty``, ``dropped_lines``) is not known of the part, and 0.
    """
    sequences = _members(store.example_offsets, rows)
    tokens = _members(store.sequence_offsets, sequences)
    return TokenStore(
        tokens=store.tokens[tokens],
        types=store.types[tokens],
        sequence_offsets=_offsets(np.diff(store.sequence_offsets)[sequences]),
        example_offsets=_offsets(np.diff(store.example_offsets)[rows]),
        labels=store.labels[rows],
        text_keys=store.text_keys[rows],
        fingerprint=fingerprint,
        data_fingerprint=fingerprint,
        truncated=0,
        empty=0,
        row_ids=rows,
    )


def _joined_offsets(parts: Sequence[IntArray]) -> IntArray:
    return _offsets(np.concatenate([np.diff(part) for part in parts]))


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def _members(offsets: IntArray, chosen: IntArray) -> IntArray:
    """The places of all members of the chosen groups, one group after the other."""
    begins, lengths = offsets[chosen], np.diff(offsets)[chosen]
    shifts = np.repeat(np.cumsum(lengths) - lengths - begins, lengths)
    return np.asarray(np.arange(shifts.size, dtype=np.int64) - shifts, dtype=np.int64)
