"""A new encoder is run once in front of a plain one before any training relies on it."""

import copy

import numpy as np
import torch

from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.store import TokenStore
from mtl.errors import ConfigError
from mtl.models.attention import PADDED
from mtl.models.dropout import DropoutKey
from mtl.models.encoder import Encoder, PackedEncoder, PaddedEncoder
from mtl.random_streams import generator

_LENGTHS = (11, 5, 23)
_TOLERANCE = 1e-3


def probe_encoder(encoder: Encoder, vocabulary_size: int) -> None:
    """Raise ConfigError unless the encoder does what it should on three random sequences.

    Packed: this project's attention was called once a layer. Packed or native: the hidden states equal those of the
    padded way. Any way: training mode is a function of the dropout key alone, so no dropout was missed.
    """
    batch = random_batch(_LENGTHS, vocabulary_size)
    name = type(encoder.model).__name__
    with torch.no_grad():
        if not isinstance(encoder, PaddedEncoder):
            encoder.eval()
            hidden = encoder(batch)
            layers = int(encoder.model.config.num_hidden_layers)
            if isinstance(encoder, PackedEncoder) and encoder.attention_calls != layers:
                raise ConfigError(
                    f"{name} called the packed attention {encoder.attention_calls} times for {layers} layers, "
                    "so its sequences would see each other: set encoder.batching=padded"
                )
            reference = _padded_copy(encoder).eval()(batch)
            difference = float((hidden - reference).abs().max())
            if not difference < _TOLERANCE * max(1.0, float(reference.abs().max())):
                raise ConfigError(
                    f"{name} without padding differs from {name} padded by {difference:.2g}: "
                    "set encoder.batching=padded"
                )
        encoder.train()
        key = DropoutKey(seed=0, step=0)
        if not torch.equal(encoder(batch, key), encoder(batch, key)):
            raise ConfigError(f"{name} draws random numbers outside nn.Dropout, so its runs could not be repeated")


def random_batch(lengths: tuple[int, ...], vocabulary_size: int) -> PackedBatch:
    """One sequence an example, of the given lengths, with random tokens from the second half of the vocabulary."""
    total = sum(lengths)
    draws = generator(0, "probe")
    # Special tokens (padding above all) stand at the start of every vocabulary.
    tokens = draws.integers(vocabulary_size // 2, vocabulary_size, total)
    store = TokenStore(
        tokens=tokens.astype(np.uint32),
        types=np.zeros(total, dtype=np.uint8),
        sequence_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        example_offsets=np.arange(len(lengths) + 1, dtype=np.int64),
        labels=np.zeros(0, dtype=np.int64),
        text_keys=np.zeros((len(lengths), 1), dtype=np.uint64),
        fingerprint="probe",
        data_fingerprint="probe",
        truncated=0,
        empty=0,
    )
    return BatchSource({"probe": store}).evaluation_batch("probe", np.arange(len(lengths), dtype=np.int64))


def _padded_copy(encoder: Encoder) -> PaddedEncoder:
    model = copy.deepcopy(encoder.model)
    model.set_attn_implementation(PADDED)
    return PaddedEncoder(model)
