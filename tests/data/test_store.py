"""Token stores: built once, equal when reopened, rebuilt when half-built, refused when damaged."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mtl import tasks
from mtl.config.encoder import ScratchEncoder
from mtl.data import build_store
from mtl.data.build_store import load_store
from mtl.data.sources import read_rows
from mtl.data.store import ARRAYS, MANIFEST, TokenStore, open_store
from mtl.data.tokenizer import TextTokenizer, load_tokenizer
from mtl.errors import ConfigError, DataError
from mtl.tasks.spec import TaskSpec

RTE = tasks.get("glue/rte")
SMALL = tasks.get("mini/entail2")


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return load_tokenizer(ScratchEncoder(tokenizer="mini"))


@pytest.fixture(scope="module")
def mini_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


def _write_rte(root: Path, *rows: tuple[str, str], torn: int = 0) -> None:
    path = root / "glue" / "RTE" / "train.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join([*texts, ("entailment", "not_entailment")[at % 2]]) for at, texts in enumerate(rows)]
    path.write_text("\n".join(["sentence1\tsentence2\tlabel", *lines, *["torn"] * torn]) + "\n")


def _load(root: Path, tokenizer: TextTokenizer, *, spec: TaskSpec = RTE, max_length: int = 16) -> TokenStore:
    return load_store(spec, "train", tokenizer, max_length=max_length, root=root, cache=root / "cache")


def _directories(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "tokens").iterdir() if path.is_dir())


def _texts(store: TokenStore, row: int) -> list[int]:
    begin, end = store.sequence_offsets[row], store.sequence_offsets[row + 1]
    return [int(token) for token in store.tokens[begin:end]]


@pytest.mark.parametrize("name", ["mini/entail2", "mini/similarity", "mini/acceptability"])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_store_holds_what_was_read(name: str, split: str, tokenizer: TextTokenizer, mini_cache: Path) -> None:
    spec = tasks.get(name)
    store = load_store(spec, split, tokenizer, max_length=64, root=None, cache=mini_cache)
    rows = read_rows(spec, split, None)
    expected = tokenizer.encode(rows.texts[0], rows.texts[1] if len(rows.texts) > 1 else None, 64)
    assert store.rows == len(rows) == len(expected)
    assert [_texts(store, row) for row in range(store.rows)] == [encoding.ids for encoding in expected]
    assert store.types.tolist() == [kind for encoding in expected for kind in encoding.type_ids]
    assert store.lengths().tolist() == [len(encoding.ids) for encoding in expected]
    assert store.labelled == (split == "dev")
    if rows.labels is None:
        assert store.labels.size == 0
    else:
        assert store.labels.dtype == rows.labels.dtype
        assert np.array_equal(store.labels, rows.labels)
    assert store.text_keys.shape == (len(rows), len(rows.texts))
    assert store.data_fingerprint == rows.fingerprint


def test_reopening_reads_the_same_arrays_without_tokenising(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_rte(tmp_path, ("a b", "c"), ("d", "e f"))
    first = _load(tmp_path, tokenizer)

    def never(*_: object) -> None:
        pytest.fail("a store that exists was built again")

    monkeypatch.setattr(build_store, "read_rows", never)
    again = _load(tmp_path, tokenizer)
    assert isinstance(again.tokens, np.memmap)
    for name in ARRAYS:
        assert np.array_equal(getattr(first, name), getattr(again, name))
        assert getattr(first, name).dtype == getattr(again, name).dtype
    assert again.fingerprint == first.fingerprint
    assert len(_directories(tmp_path / "cache")) == 1


def test_equal_texts_have_equal_keys(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path, ("same", "other"), ("third", "same"), ("same ", "Same"))
    keys = _load(tmp_path, tokenizer).text_keys
    assert keys[0, 0] == keys[1, 1]
    assert np.unique(keys).size == 5


@pytest.mark.parametrize(("vocabulary", "expected"), [(2**16, np.uint16), (2**16 + 1, np.uint32)])
def test_tokens_take_the_smaller_type_that_holds_them(vocabulary: int, expected: type, tmp_path: Path) -> None:
    class Words:
        fingerprint = str(vocabulary)
        vocabulary_size = vocabulary
        mark = None

        def encode(self, first: list[str], second: list[str] | None, max_length: int) -> list[SimpleNamespace]:
            return [SimpleNamespace(ids=[0, vocabulary - 1], type_ids=[0, 1], overflowing=[]) for _ in first]

    _write_rte(tmp_path, ("a", "b"))
    store = _load(tmp_path, Words())  # type: ignore[arg-type]
    assert store.tokens.dtype == expected
    assert store.tokens.tolist() == [0, vocabulary - 1]
    assert store.types.dtype == np.uint8


def test_truncated_and_empty_examples_are_counted_and_kept(
    tmp_path: Path, tokenizer: TextTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    _write_rte(tmp_path, ("", "a b"), ("a " * 30, "b"), ("a", "b"), (" ", "a " * 30))
    with caplog.at_level(logging.INFO, logger="mtl"):
        store = _load(tmp_path, tokenizer)
    assert (store.truncated, store.empty, store.dropped_lines) == (2, 2, 0)
    assert store.rows == 4
    assert store.lengths().tolist() == [5, 16, 5, 16]
    assert "2 examples cut to 16 tokens" in caplog.text
    assert "2 examples with an empty text" in caplog.text


def test_dropped_lines_are_carried_and_logged(
    tmp_path: Path, tokenizer: TextTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    _write_rte(tmp_path, ("a", "b"), ("c", "d"), torn=3)
    part = RTE.splits["train"].model_copy(update={"official_rows": 2})
    spec = RTE.model_copy(update={"splits": {**RTE.splits, "train": part}})
    with caplog.at_level(logging.INFO, logger="mtl"):
        store = _load(tmp_path, tokenizer, spec=spec)
    assert (store.rows, store.dropped_lines) == (2, 3)
    assert "3 malformed lines" in caplog.text
    assert _load(tmp_path, tokenizer, spec=spec).dropped_lines == 3


def test_whatever_changes_the_arrays_changes_the_key(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path, ("a b", "c"))
    fingerprints = [_load(tmp_path, tokenizer).fingerprint, _load(tmp_path, tokenizer, max_length=17).fingerprint]
    swapped = {"text_columns": ("sentence2", "sentence1")}
    relabelled = {"labels": RTE.labels[::-1]}
    for change in (swapped, relabelled, {"version": RTE.version + 1}):
        fingerprints.append(_load(tmp_path, tokenizer, spec=RTE.model_copy(update=change)).fingerprint)
    other = TextTokenizer(tokenizer.hugging_face, "another fingerprint")
    fingerprints.append(_load(tmp_path, other).fingerprint)
    _write_rte(tmp_path, ("a b", "d"))
    fingerprints.append(_load(tmp_path, tokenizer).fingerprint)
    assert len(set(fingerprints)) == len(fingerprints)
    assert len(_directories(tmp_path / "cache")) == len(fingerprints)


def test_what_does_not_change_the_arrays_does_not_change_the_key(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path, ("a b", "c"))
    rescored = RTE.model_copy(update={"in_suite_score": False})
    assert _load(tmp_path, tokenizer).fingerprint == _load(tmp_path, tokenizer, spec=rescored).fingerprint


@pytest.mark.parametrize("name", ARRAYS)
def test_a_flipped_byte_is_noticed(name: str, tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path, ("a b", "c"))
    _load(tmp_path, tokenizer)
    [directory] = _directories(tmp_path / "cache")
    file = directory / f"{name}.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}\.npy is missing or damaged; delete .* to have it rebuilt"):
        _load(tmp_path, tokenizer)
    file.unlink()
    with pytest.raises(DataError, match=rf"{name}\.npy is missing"):
        open_store(directory)


@pytest.mark.parametrize("content", ["", "{"])
def test_a_damaged_manifest_is_noticed(content: str, tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path, ("a b", "c"))
    _load(tmp_path, tokenizer)
    [directory] = _directories(tmp_path / "cache")
    (directory / MANIFEST).write_text(content)
    with pytest.raises(DataError, match="missing or damaged"):
        _load(tmp_path, tokenizer)


def test_a_half_built_store_is_rebuilt(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path, ("a b", "c"))
    first = _load(tmp_path, tokenizer)
    tokens = first.tokens.tolist()
    [directory] = _directories(tmp_path / "cache")
    (directory / MANIFEST).unlink()
    (directory / "tokens.npy").write_bytes(b"half")
    (directory / "left over").write_text("")
    abandoned = directory.with_name(f".{directory.name}.building")
    abandoned.mkdir()
    (abandoned / "tokens.npy").write_bytes(b"half")
    assert _load(tmp_path, tokenizer).tokens.tolist() == tokens
    assert _directories(tmp_path / "cache") == [directory]
    assert not (directory / "left over").exists()
    assert set(json.loads((directory / MANIFEST).read_text())["sha256"]) == {f"{name}.npy" for name in ARRAYS}


_LOAD = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from mtl import tasks
from mtl.data import build_store

class Words:
    fingerprint, vocabulary_size, mark = "words", 9, None
    def encode(self, first, second, max_length):
        print("tokenised")
        time.sleep(1)
        return [SimpleNamespace(ids=[2, len(text) % 5, 3], type_ids=[0] * 3, overflowing=[]) for text in first]

Path(sys.argv[2]).touch()
while not all(Path(each).exists() for each in sys.argv[2:]):
    time.sleep(0.01)
root = Path(sys.argv[1])
store = build_store.load_store(tasks.get("glue/rte"), "train", Words(), max_length=16, root=root, cache=root / "cache")
print(store.tokens.tolist())
"""


def test_two_processes_at_once_build_it_once(tmp_path: Path, repository: Path) -> None:
    _write_rte(tmp_path, ("a", "b"), ("cd", "e"))
    ready = [str(tmp_path / "first"), str(tmp_path / "second")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _LOAD, str(tmp_path), *order], cwd=repository, stdout=subprocess.PIPE, text=True
        )
        for order in (ready, ready[::-1])
    ]
    outputs = [process.communicate(timeout=60)[0].split("\n") for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sorted("tokenised" in lines for lines in outputs) == [False, True]
    assert all("[2, 1, 3, 2, 2, 3]" in lines for lines in outputs)


def test_a_split_without_rows_is_refused(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    _write_rte(tmp_path)
    with pytest.raises(DataError, match="glue/rte train: there are no rows"):
        _load(tmp_path, tokenizer)
    assert _directories(tmp_path / "cache") == []


def test_missing_data_and_unknown_splits_are_named(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    with pytest.raises(DataError, match="MTL_DATA_DIR"):
        _load(tmp_path, tokenizer)
    with pytest.raises(ConfigError, match="has no split 'trian'"):
        load_store(SMALL, "trian", tokenizer, max_length=16, root=None, cache=tmp_path)


def test_data_that_change_while_they_are_read_are_refused(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_rte(tmp_path, ("a", "b"))
    monkeypatch.setattr(build_store, "source_fingerprint", lambda *_: "what it was before")
    with pytest.raises(DataError, match="changed while it was read"):
        _load(tmp_path, tokenizer)


def test_lengths_add_up_all_sequences_of_an_example() -> None:
    store = TokenStore(
        tokens=np.arange(10, dtype=np.uint16),
        types=np.zeros(10, dtype=np.uint8),
        sequence_offsets=np.array([0, 2, 5, 6, 10]),
        example_offsets=np.array([0, 1, 3, 4]),
        labels=np.array([0, 1, 0]),
        text_keys=np.zeros((3, 1), dtype=np.uint64),
        fingerprint="",
        data_fingerprint="",
        truncated=0,
        empty=0,
    )
    assert store.rows == 3
    assert store.lengths().tolist() == [2, 4, 4]
