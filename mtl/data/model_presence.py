"""Which files of a model are on this machine, told without loading one of them and without a network."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.model_paths import resolve_model_path
from mtl.errors import DataError

_CONFIG = ("config.json",)
# Any one of each is enough: a large model's weights are in parts that an index names.
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_TOKENIZER = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


@dataclass(frozen=True)
class ModelPresence:
    """Where an encoder or tokenizer comes from, what of it is missing, and how to get that (None: nothing is)."""

    place: str
    missing: tuple[str, ...] = ()
    mend: str | None = None


def encoder_presence(encoder: EncoderSettings) -> ModelPresence:
    """Whether what ``encoder`` starts from is here: weights and tokenizer, or only a tokenizer, or nothing at all."""
    match encoder:
        case PretrainedEncoder(path=path):
            return _model(path, (_CONFIG, _WEIGHTS, _TOKENIZER))
        case ScratchEncoder(tokenizer="mini"):
            return ModelPresence("random weights and the word list of the mini tasks; needs no file")
        case ScratchEncoder(tokenizer=path):
            return _model(path, (_TOKENIZER,))
    return ModelPresence(f"of the kind {encoder.kind}, which a plug-in added; not looked at")


def offline() -> bool:
    """Whether the environment forbids downloads from the Hugging Face hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def model_file(path: str, name: str) -> Path | None:
    """The file of that name of a model or tokenizer: in its directory, package or the hub cache; None if absent."""
    alone = Path(path).expanduser() / name
    if alone.is_file():
        return alone
    try:
        resolved = resolve_model_path(path)
    except DataError:
        return None
    inside = Path(resolved) / name
    return inside if inside.is_file() else _cached(resolved, name)


def _model(path: str, wanted: tuple[tuple[str, ...], ...]) -> ModelPresence:
    tokenizer_alone = (Path(path).expanduser() / "tokenizer.json").is_file() and wanted == (_TOKENIZER,)
    try:
        resolved = path if tokenizer_alone else resolve_model_path(path)
    except DataError as error:
        return ModelPresence(path, ("all of it",), str(error))
    if Path(resolved).expanduser().is_dir():
        directory = Path(resolved).expanduser()
        missing = _missing(wanted, lambda name: (directory / name).is_file())
        mend = f"copy {' and '.join(missing)} into {directory}" if missing else None
        return ModelPresence(str(directory), missing, mend)
    missing = _missing(wanted, lambda name: _is_cached(resolved, name))
    mend = None
    if missing:
        how = "unset HF_HUB_OFFLINE and run" if offline() else "run"
        mend = f"{how} `mtl prepare` where there is a network, or set encoder.path to a directory that holds the model"
    return ModelPresence(f"{resolved} in the hub cache", missing, mend)


def _missing(wanted: tuple[tuple[str, ...], ...], is_here: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(names[0] for names in wanted if not any(is_here(name) for name in names))


def _is_cached(repository: str, name: str) -> bool:
    return _cached(repository, name) is not None


def _cached(repository: str, name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(repository, name)
    except HFValidationError:
        # No repository can be called so, hence nothing of it can be here.
        return None
    return Path(found) if isinstance(found, str) else None
