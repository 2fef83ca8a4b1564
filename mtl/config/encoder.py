"""Settings of the shared encoder and of the heads on it."""

from typing import Annotated, Literal

from pydantic import Field

from mtl.config.kinds import OneOf
from mtl.config.path_text import PathText
from mtl.config.settings import Settings


class EncoderSettings(Settings):
    """What every encoder's settings have.

    ``batching``: ``packed`` runs all sequences of a batch as one row without padding, ``padded`` is the plain way, for
    models whose attention cannot be replaced; ``native`` is this project's own faster pass for BERT-shaped models, and
    ``auto`` takes it for those and ``packed`` for all others. All compute the same up to rounding. ``dropout``: None
    keeps the model's own rates.
    """

    kind: str
    batching: Literal["auto", "native", "packed", "padded"] = "auto"
    dropout: float | None = Field(default=None, ge=0, lt=1)
    known_training_data: tuple[str, ...] = ()
    """Corpora the encoder was trained on that bear on a reported score; printed beside every table."""


class PretrainedEncoder(EncoderSettings):
    """A pretrained model: a hub id, a directory, or ``package:NAME`` for weights inside an installed package."""

    kind: Literal["pretrained"] = "pretrained"
    path: PathText = "google-bert/bert-base-uncased"


class ScratchEncoder(EncoderSettings):
    """A BERT-shaped encoder with random weights; ``tokenizer`` is ``mini`` or a path as for a pretrained model."""

    kind: Literal["scratch"] = "scratch"
    tokenizer: PathText = "google-bert/bert-base-uncased"
    layers: int = Field(default=4, ge=1)
    width: int = Field(default=256, ge=1)
    attention_heads: int = Field(default=4, ge=1)
    feed_forward: int = Field(default=1024, ge=1)
    positions: int = Field(default=512, ge=8)
    initial_spread: float | None = Field(default=None, gt=0)
    """Standard deviation of the first weights; None is ``width ** -0.5``. BERT's 0.02 suits a width of 768: narrow
    encoders start with attention so even that they learn little for hundreds of updates."""


ENCODERS: dict[str, type[Settings]] = {"pretrained": PretrainedEncoder, "scratch": ScratchEncoder}
AnyEncoder = Annotated[EncoderSettings, OneOf(ENCODERS)]


class HeadSettings(Settings):
    """What every head's settings have: a learning rate of its own where one is set, else the encoder's."""

    kind: str
    learning_rate: float | None = Field(default=None, gt=0)


class SequenceHeadSettings(HeadSettings):
    """One vector a sequence, pooled from the encoder's output, then dropout and one linear layer."""

    kind: Literal["sequence"] = "sequence"
    pooling: Literal["first_dense", "first", "mean"] = "first_dense"
    dropout: float = Field(default=0.1, ge=0, lt=1)


HEADS: dict[str, type[Settings]] = {"sequence": SequenceHeadSettings}
AnyHead = Annotated[HeadSettings, OneOf(HEADS)]
