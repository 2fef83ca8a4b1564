"""Building an encoder: from pretrained weights or from scratch, checked once before it is trusted."""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.model_paths import resolve_model_path
from mtl.errors import ConfigError, DataError
from mtl.models.attention import PACKED, PADDED
from mtl.models.dropout import replace_dropout
from mtl.models.encoder import Encoder, PackedEncoder, PaddedEncoder
from mtl.models.native.encoder import NativeEncoder
from mtl.models.native.parts import is_bert_shaped
from mtl.models.probe import probe_encoder
from mtl.random_streams import stream_key
from mtl.runtime.checkpoint_files import load_tensors

logger = logging.getLogger("mtl")

_DROPOUT_FIELDS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
)


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder, its pretrained pooler if it came with one (a dense layer's state), and the hash of its weights."""

    encoder: Encoder
    pooler: dict[str, Tensor] | None
    weights_sha256: str


def load_encoder(settings: EncoderSettings, seed: int, vocabulary_size: int) -> LoadedEncoder:
    """The encoder that the settings describe, with keyed dropout, probed in the way it will be run.

    A scratch encoder's weights are drawn from the stream (seed, "encoder"). DataError where weights are missing;
    ConfigError where the model cannot be run packed.
    """
    match settings:
        case PretrainedEncoder(path=path):
            model, missing = _pretrained(path, settings)
        case ScratchEncoder():
            model, missing = _scratch(settings, seed, vocabulary_size), frozenset({"pooler"})
        case _:
            raise ConfigError(f"encoder.kind {settings.kind!r} has no builder")
    _check_vocabulary(model, vocabulary_size)
    # What the file lacks was made up at random and is no part of what was loaded.
    digest = weights_sha256({name: value for name, value in model.state_dict().items() if name not in missing})
    pooler = _take_pooler(model, missing)
    encoder = wrap_model(model, settings.batching)
    probe_encoder(encoder, vocabulary_size)
    return LoadedEncoder(encoder, pooler, digest)


def load_saved_encoder(directory: Path, batching: str) -> Encoder:
    """An encoder of the architecture that a checkpoint directory of this project holds, and with its weights.

    DataError names the tensors that are missing, left over or of another shape.
    """
    from transformers import AutoConfig, AutoModel

    # Built from the config and filled tensor by tensor: from_pretrained would invent what the file does not hold.
    with torch.random.fork_rng(devices=[]):
        config = AutoConfig.from_pretrained(directory)
        model = AutoModel.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    if hasattr(model, "pooler"):
        model.pooler = None
    load_exactly(model, load_tensors(directory, "model"), f"{directory} (encoder)")
    return wrap_model(model, batching)


def wrap_model(model: Any, batching: str) -> Encoder:
    """A bare Hugging Face encoder made ready to be run in the way ``encoder.batching`` says."""
    if batching == "native" and not is_bert_shaped(model):
        raise ConfigError(
            f"{type(model).__name__} is not of BERT's shape, so there is no native pass for it: set "
            "encoder.batching=auto or packed"
        )
    if batching == "auto":
        batching = "native" if is_bert_shaped(model) else "packed"
    replaceable = bool(getattr(model, "_supports_attention_backend", False))
    if batching == "packed" and not replaceable:
        raise ConfigError(
            f"the attention of {type(model).__name__} cannot be replaced, so it cannot be packed: "
            "set encoder.batching=padded"
        )
    if replaceable:
        model.set_attn_implementation(PADDED if batching == "padded" else PACKED)
    replace_dropout(model)
    kinds: dict[str, type[Encoder]] = {"native": NativeEncoder, "packed": PackedEncoder, "padded": PaddedEncoder}
    return kinds[batching](model)


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """Hash of names, shapes and fp32 values, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        array = weights[name].detach().float().contiguous().cpu().numpy()
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_vocabulary(model: Any, vocabulary_size: int) -> None:
    embedded = int(model.get_input_embeddings().num_embeddings)
    if vocabulary_size > embedded:
        raise DataError(
            f"the tokenizer has {vocabulary_size} tokens but {type(model).__name__} embeds only {embedded}: "
            "they belong to different models; take both from the same place"
        )


def _pretrained(path: str, settings: EncoderSettings) -> tuple[Any, frozenset[str]]:
    overrides = {} if settings.dropout is None else dict.fromkeys(_DROPOUT_FIELDS, settings.dropout)
    return _from_directory(resolve_model_path(path), overrides, allowed_missing=("pooler",))


def _from_directory(
    path: str, dropout: Mapping[str, float], *, allowed_missing: tuple[str, ...]
) -> tuple[Any, frozenset[str]]:
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModel

    try:
        config = AutoConfig.from_pretrained(path)
        for name, value in dropout.items():
            if hasattr(config, name):
                setattr(config, name, value)
        # What the file lacks is drawn from torch's global generator, which is put back as it was.
        with torch.random.fork_rng(devices=[]), quiet_transformers():
            model, report = AutoModel.from_pretrained(
                path,
                config=config,
                dtype=torch.float32,
                output_loading_info=True,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # They are refused below, by name.
            )
    except (OSError, ValueError, SafetensorError) as error:
        raise DataError(f"no model could be loaded from {path}: {error}") from error
    missing = [name for name in report["missing_keys"] if not name.startswith(allowed_missing)]
    if missing or report["mismatched_keys"]:
        raise DataError(
            f"the weights at {path} do not fit {type(model).__name__}: missing {sorted(missing)[:5]}, of another shape "
            f"{sorted(map(str, report['mismatched_keys']))[:5]}; the file is incomplete or belongs to another model"
        )
    return model, frozenset(report["missing_keys"])


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from showing bars and a report of missing weights: what is missing is judged here."""
    from transformers.utils import logging as transformers_logging

    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _scratch(settings: ScratchEncoder, seed: int, vocabulary_size: int) -> Any:
    from transformers import BertConfig, BertModel

    if settings.width % settings.attention_heads:
        raise ConfigError(
            f"encoder.width {settings.width} cannot be shared among encoder.attention_heads "
            f"{settings.attention_heads}: make it a multiple"
        )
    rate = 0.1 if settings.dropout is None else settings.dropout
    config = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.attention_heads,
        intermediate_size=settings.feed_forward,
        max_position_embeddings=settings.positions,
        hidden_dropout_prob=rate,
        attention_probs_dropout_prob=rate,
        initializer_range=settings.initial_spread or settings.width**-0.5,
    )
    # Hugging Face draws from torch's global generator; it is put back as it was.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_key(seed, "encoder") % 2**63)
        return BertModel(config, add_pooling_layer=False)


def _take_pooler(model: Any, missing: frozenset[str]) -> dict[str, Tensor] | None:
    """The state of the pooler's dense layer if its weights were loaded; the pooler itself is removed from the model."""
    pooler = getattr(model, "pooler", None)
    if pooler is None:
        return None
    model.pooler = None
    layer = getattr(pooler, "dense", pooler)
    if not isinstance(layer, nn.Linear) or any(name.startswith("pooler") for name in missing):
        return None
    return {name: tensor.detach().clone() for name, tensor in layer.state_dict().items()}


def load_exactly(module: nn.Module, state: Mapping[str, Tensor], where: str) -> None:
    """Fill every parameter and buffer of ``module`` from ``state``, by name and shape; DataError for any difference."""
    expected = {name: tensor.shape for name, tensor in module.state_dict().items()}
    found = {name: tensor.shape for name, tensor in state.items()}
    if expected != found:
        different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise DataError(f"the weights in {where} do not fit the model; they differ in {different[:5]}")
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            tensor.copy_(state[name])
