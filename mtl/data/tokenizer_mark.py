"""What tells one tokenizer's files from another's without loading them: two that differ have different marks."""

import hashlib

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.mini_words import mini_words
from mtl.data.model_presence import model_file

_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json")


def tokenizer_mark(encoder: EncoderSettings) -> str | None:
    """A hash of the files, or words, that the encoder's tokenizer is made of; None where none of them is here."""
    match encoder:
        case ScratchEncoder(tokenizer="mini"):
            return hashlib.sha256("\n".join(mini_words()).encode()).hexdigest()
        case ScratchEncoder(tokenizer=path) | PretrainedEncoder(path=path):
            files = {name: model_file(path, name) for name in _FILES}
        case _:
            return None
    found = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items() if file is not None}
    return hashlib.sha256(repr(found).encode()).hexdigest() if found else None
