"""The shape of an encoder as its config tells it: enough to count operations and parameters, no weight is read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.model_presence import model_file
from mtl.errors import DataError

# Families that are a stack of plain transformer layers, so that the counts below are theirs.
_NATIVE = ("bert", "roberta", "xlm-roberta", "camembert", "electra")
_KNOWN = (*_NATIVE, "distilbert")
# DistilBERT calls some of them by other names.
_OTHER_NAMES = {
    "num_hidden_layers": "n_layers",
    "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
    "num_attention_heads": "n_heads",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}


@dataclass(frozen=True)
class EncoderShape:
    """A stack of transformer layers of one width over word, position and type embeddings, without a pooler.

    ``vocabulary`` is None where the tokenizer is not here. ``native``: run by this project's own pass, which computes
    the last layer for first tokens alone where no head reads others.
    """

    layers: int
    width: int
    feed_forward: int
    attention_heads: int
    vocabulary: int | None
    positions: int
    types: int
    embedding_width: int
    hidden_dropout: float
    attention_dropout: float
    native: bool

    @property
    def projection(self) -> int:
        """Weights between embeddings and layers; none where both have one width."""
        return 0 if self.embedding_width == self.width else self.embedding_width * self.width

    @property
    def parameters(self) -> int | None:
        """Weights, biases and norms together; None where the vocabulary is unknown."""
        if self.vocabulary is None:
            return None
        width, feed_forward, narrow = self.width, self.feed_forward, self.embedding_width
        embeddings = (self.vocabulary + self.positions + self.types + 2) * narrow
        layer = 4 * (width * width + width) + 2 * width * feed_forward + feed_forward + width + 4 * width
        return embeddings + self.layers * layer + self.projection + (width if self.projection else 0)


def encoder_shape(settings: EncoderSettings) -> EncoderShape | None:
    """The shape that the settings describe; None where its config is not on this machine or of an unknown family."""
    native = settings.batching in ("auto", "native")
    match settings:
        case ScratchEncoder():
            rate = 0.1 if settings.dropout is None else settings.dropout
            return EncoderShape(
                layers=settings.layers,
                width=settings.width,
                feed_forward=settings.feed_forward,
                attention_heads=settings.attention_heads,
                vocabulary=_vocabulary(settings.tokenizer),
                positions=settings.positions,
                types=2,
                embedding_width=settings.width,
                hidden_dropout=rate,
                attention_dropout=rate,
                native=native,
            )
        case PretrainedEncoder(path=path):
            config = model_file(path, "config.json")
            return None if config is None else _described(_document(config), settings.dropout, native=native)
    return None


def _described(config: Mapping[str, Any], dropout: float | None, *, native: bool) -> EncoderShape | None:
    family = config.get("model_type")
    if family not in _KNOWN:
        return None

    def value(name: str, default: float | None = None) -> Any:
        found = config.get(name, config.get(_OTHER_NAMES.get(name, name), default))
        if found is None:
            raise DataError(f"the config of a {family} has no {name}: copy its config.json anew")
        return found

    return EncoderShape(
        layers=int(value("num_hidden_layers")),
        width=int(value("hidden_size")),
        feed_forward=int(value("intermediate_size")),
        attention_heads=int(value("num_attention_heads")),
        vocabulary=int(value("vocab_size")),
        positions=int(value("max_position_embeddings")),
        types=0 if family == "distilbert" else int(value("type_vocab_size", 2)),
        embedding_width=int(value("embedding_size", value("hidden_size"))),
        hidden_dropout=float(value("hidden_dropout_prob", 0.1)) if dropout is None else dropout,
        attention_dropout=float(value("attention_probs_dropout_prob", 0.1)) if dropout is None else dropout,
        native=native and family in _NATIVE,
    )


def _vocabulary(tokenizer: str) -> int | None:
    """Words of a tokenizer, those added later included; None where its file is not here."""
    if tokenizer == "mini":
        from mtl.data.mini_words import mini_words

        return len(mini_words())
    file = model_file(tokenizer, "tokenizer.json")
    if file is None:
        return None
    document = _document(file)
    words = document["model"]["vocab"]
    # A unigram model lists pairs of word and score, the others map words to numbers.
    known = set(words) if isinstance(words, dict) else {word for word, _ in words}
    return len(known | {added["content"] for added in document.get("added_tokens", ())})


def _document(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged: copy it anew") from error
    return document
