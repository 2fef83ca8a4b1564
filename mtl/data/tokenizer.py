"""Text to token ids: any fast Hugging Face tokenizer, or the word list of the mini tasks."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.mini_words import SPECIAL_WORDS, mini_words
from mtl.data.model_paths import resolve_model_path
from mtl.data.tokenizer_mark import tokenizer_mark
from mtl.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer whose ``fingerprint`` covers every rule and word, but not its padding and truncation state.

    ``mark`` identifies the files it was loaded from (see mtl.data.tokenizer_mark); None where nobody asked for it.
    """

    hugging_face: "PreTrainedTokenizerFast"
    fingerprint: str
    mark: str | None = None

    @property
    def vocabulary_size(self) -> int:
        """Ids run from 0 to one less than this."""
        return len(self.hugging_face)

    def encode(self, first: Sequence[str], second: Sequence[str] | None, max_length: int) -> "list[Encoding]":
        """Encodings with special tokens, cut longest first; what was cut shows as ``encoding.overflowing``."""
        self._backend.enable_truncation(max_length, strategy="longest_first")
        inputs = list(first) if second is None else list(zip(first, second, strict=True))
        return self._backend.encode_batch(inputs)

    @cached_property
    def _backend(self) -> "Tokenizer":
        # A copy of our own: callers of the Hugging Face tokenizer do not see our truncation, nor we theirs.
        return _without_state(self.hugging_face.backend_tokenizer)


def load_tokenizer(encoder: EncoderSettings) -> TextTokenizer:
    """The tokenizer that belongs to the encoder's settings."""
    return replace(_load(encoder), mark=tokenizer_mark(encoder))


def _load(encoder: EncoderSettings) -> TextTokenizer:
    match encoder:
        case PretrainedEncoder(path=path):
            return tokenizer_from_path(path)
        case ScratchEncoder(tokenizer="mini"):
            return _wrap(_mini_tokenizer())
        case ScratchEncoder(tokenizer=path):
            return tokenizer_from_path(path)
    raise ConfigError(f"no tokenizer is known for encoder.kind {encoder.kind!r}")


def tokenizer_from_path(path: str | Path) -> TextTokenizer:
    """The fast tokenizer at a hub id, directory or ``package:NAME``; DataError where there is none."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    # A tokenizer may stand alone, without the model that resolve_model_path asks for.
    alone = (Path(path).expanduser() / "tokenizer.json").is_file()
    resolved = str(Path(path).expanduser()) if alone else resolve_model_path(str(path))
    try:
        loaded = AutoTokenizer.from_pretrained(resolved)
    except OSError as error:
        raise DataError(
            f"no tokenizer could be loaded from {path}: {error}. Name a directory with tokenizer.json or a hub id; "
            "without a network the model has to be in the Hugging Face cache already"
        ) from error
    if not isinstance(loaded, PreTrainedTokenizerFast):
        raise DataError(f"the tokenizer of {path} has no fast version (tokenizer.json), which packing needs")
    # Where the files are missing, transformers makes a tokenizer without words, to which every text is unknown.
    if len(loaded) <= len(loaded.all_special_tokens):
        raise DataError(f"{path} holds no tokenizer: copy its tokenizer.json beside config.json")
    return _wrap(loaded)


def _wrap(tokenizer: "PreTrainedTokenizerFast") -> TextTokenizer:
    text = _without_state(tokenizer.backend_tokenizer).to_str()
    return TextTokenizer(tokenizer, hashlib.sha256(text.encode()).hexdigest())


def _without_state(backend: "Tokenizer") -> "Tokenizer":
    """A copy without padding and truncation, which callers switch on and off."""
    from tokenizers import Tokenizer

    document = json.loads(backend.to_str())
    document["padding"] = document["truncation"] = None
    return Tokenizer.from_str(json.dumps(document))


def _mini_tokenizer() -> "PreTrainedTokenizerFast":
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: number for number, word in enumerate(mini_words())}
    backend = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    # Without these names an exported model would not be told which text is the second.
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, model_input_names=inputs, **SPECIAL_WORDS
    )
