"""What passes through a model, and what its arithmetic comes to: operations, elements and parameters.

Letters: T tokens, S sequences, Q the sum of squared sequence lengths, d width, f feed-forward, L layers, C outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

from mtl.costs.shape import EncoderShape


@dataclass(frozen=True)
class HeadShape:
    """A head of one linear layer, after a dense one of the encoder's width or not."""

    outputs: int
    dense: bool
    first_tokens_only: bool

    def weights(self, width: int) -> int:
        """Of its linear layers, biases left out."""
        return width * self.outputs + (width * width if self.dense else 0)

    def parameters(self, width: int) -> int:
        """All of them."""
        return self.weights(width) + self.outputs + (width if self.dense else 0)


@dataclass(frozen=True)
class Passage:
    """Rows on their way through a model, or their expected number: T, Q and S, and what heads compute for them.

    ``head_weights``: the sum over sequences of the weights of the head that reads it.
    """

    tokens: float = 0.0
    squared: float = 0.0
    sequences: float = 0.0
    head_weights: float = 0.0

    def __add__(self, other: Self) -> "Passage":
        return Passage(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def times(self, factor: float) -> "Passage":
        """So many times as much."""
        return Passage(*(getattr(self, each.name) * factor for each in fields(self)))


@dataclass(frozen=True)
class Work:
    """What time and memory follow from, of one pass or the sum over many.

    ``flops`` are operations that are computed, ``elements`` and ``scores`` the numbers that stand between operations in
    all layers (hidden states; attention's weights), ``masks`` those of them that dropout touches. ``parameters``,
    ``layers``, ``masked_layers`` (those with dropout) and ``passes`` count how often each is visited whatever the size
    of the batch.
    """

    flops: float = 0.0
    elements: float = 0.0
    scores: float = 0.0
    masks: float = 0.0
    parameters: float = 0.0
    layers: float = 0.0
    masked_layers: float = 0.0
    passes: float = 0.0

    def __add__(self, other: Self) -> "Work":
        return Work(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def times(self, factor: float) -> "Work":
        """So many times as much."""
        return Work(*(getattr(self, each.name) * factor for each in fields(self)))


WORK_NAMES = tuple(each.name for each in fields(Work))


def forward_flops(shape: EncoderShape, passage: Passage) -> float:
    """Useful operations of a forward pass, counted as ``mtl.training.flops`` counts them."""
    per_token = 2.0 * (shape.layers * _layer_weights(shape) + shape.projection)
    attention = 4.0 * shape.layers * shape.width
    return per_token * passage.tokens + attention * passage.squared + 2.0 * passage.head_weights


def training_flops(shape: EncoderShape, passage: Passage) -> float:
    """Of forward and backward together: three forwards."""
    return 3.0 * forward_flops(shape, passage)


def pass_work(
    shape: EncoderShape, passage: Passage, parameters: float, *, first_only: bool, training: bool, passes: float = 1.0
) -> Work:
    """The work of ``passes`` passes that take ``passage`` together, with the backward ones where ``training``.

    ``first_only``: no head reads any but first tokens, so that the native encoder leaves the others out of its last
    layer; what is left out counts in :func:`forward_flops` but not here.
    """
    saved = shape.native and first_only
    width, whole = shape.width, shape.layers - saved
    tokens, sequences = passage.tokens, passage.sequences
    flops = forward_flops(shape, passage)
    elements, scores = whole * width * tokens, whole * shape.attention_heads * passage.squared
    if saved:
        # Keys and values are still of all tokens; queries, what attention gives and all after it of first ones.
        rest = 2.0 * (_layer_weights(shape) - 2 * width * width)
        flops -= rest * (tokens - sequences) + 4.0 * width * (passage.squared - tokens)
        elements += width * sequences
        scores += shape.attention_heads * tokens
    masks = 0.0
    if training and shape.hidden_dropout > 0.0:
        masks += 2.0 * elements + shape.embedding_width * tokens
    if training and shape.attention_dropout > 0.0:
        masks += scores
    return Work(
        flops=flops * (3.0 if training else 1.0),
        elements=elements,
        scores=scores,
        masks=masks,
        parameters=parameters,
        layers=shape.layers * passes,
        masked_layers=shape.layers * passes if masks else 0.0,
        passes=passes,
    )


def model_parameters(shape: EncoderShape, heads: Sequence[HeadShape]) -> int | None:
    """Of encoder and heads; None where the vocabulary is unknown."""
    encoder = shape.parameters
    return None if encoder is None else encoder + sum(head.parameters(shape.width) for head in heads)


def widest(shape: EncoderShape, tokens: float) -> float:
    """Numbers that a layer holds at once where nothing is kept for a backward pass."""
    return (4.0 * shape.width + 2.0 * shape.feed_forward) * tokens


def _layer_weights(shape: EncoderShape) -> int:
    return 4 * shape.width * shape.width + 2 * shape.width * shape.feed_forward
