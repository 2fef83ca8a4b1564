"""Tokenising under the clock: building a token store, in turn with the bare tokenizer on the same texts."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mtl import tasks as task_registry
from mtl.bench.records import TokenisingMeasure, TokenisingSetting
from mtl.config.locations import data_root
from mtl.config.run import RunConfig
from mtl.data.build_store import build_store
from mtl.data.sources import Rows, read_rows
from mtl.data.store import open_store
from mtl.data.tokenizer import TextTokenizer, load_tokenizer
from mtl.runtime.device import describe_hardware, git_commit, versions
from mtl.stages.checks import check_config

_WARMUP_ROWS = 256


def measure_tokenising(
    config: RunConfig, turns: int, *, clock: Callable[[], float] = time.perf_counter
) -> TokenisingMeasure:
    """``turns`` times, a store for the training rows of every task, then one call of the tokenizer for each.

    The rows are in memory before. A store's time covers tokenising, hashes of the texts, and writing, syncing, checking
    and mapping its files; the call's time ends with the ids as Python lists. Both use the threads that the environment
    gives the tokenizer. Stores go to a temporary directory and are deleted.
    """
    names = task_registry.expand(config.tasks)
    check_config(config, names)
    trained, _ = task_registry.split_roles(names)
    tokenizer, root, longest = load_tokenizer(config.encoder), data_root(config), config.data.max_length
    rows = [read_rows(task_registry.get(name), "train", root) for name in trained]
    _warm_up(tokenizer, rows[0], longest)
    ours, bare, tokens = [], [], 0
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as directory:
            began = clock()
            stores = [
                _store(Path(directory, str(number)), each, tokenizer, longest) for number, each in enumerate(rows)
            ]
            ours.append(clock() - began)
            tokens = sum(stores)
        began = clock()
        found = sum(bare_tokens(tokenizer, each.texts, longest) for each in rows)
        bare.append(clock() - began)
        assert found == tokens, "both sides cut the same texts"
    return TokenisingMeasure(
        setting=TokenisingSetting(
            tokenizer=getattr(config.encoder, "path", getattr(config.encoder, "tokenizer", config.encoder.kind)),
            tasks=trained,
            max_length=longest,
            machine=describe_hardware(),
            versions=versions(),
            commit=git_commit(Path(__file__).parent),
        ),
        rows=sum(map(len, rows)),
        tokens=tokens,
        store_seconds=tuple(ours),
        bare_seconds=tuple(bare),
    )


def bare_tokens(tokenizer: TextTokenizer, texts: Sequence[list[str]], max_length: int) -> int:
    """Tokens of one call of the Hugging Face tokenizer on all rows at once."""
    encoded = tokenizer.hugging_face(*texts, truncation="longest_first", max_length=max_length)
    return sum(map(len, encoded["input_ids"]))


def _store(directory: Path, rows: Rows, tokenizer: TextTokenizer, max_length: int) -> int:
    build_store(directory, rows, tokenizer, max_length, fingerprint="", description="rows")
    return int(open_store(directory).tokens.size)


def _warm_up(tokenizer: TextTokenizer, rows: Rows, max_length: int) -> None:
    """The first calls make copies of the tokenizer and start its threads."""
    texts = [column[:_WARMUP_ROWS] for column in rows.texts]
    tokenizer.encode(texts[0], texts[1] if len(texts) > 1 else None, max_length)
    bare_tokens(tokenizer, texts, max_length)
