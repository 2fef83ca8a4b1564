"""Heads: a task's outputs and losses from the encoder's hidden states.

Letters: T tokens, D width, B_t examples of the task in the batch, S_t its sequences, C outputs.
"""

from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtl.config.encoder import SequenceHeadSettings
from mtl.data.batches import PackedBatch
from mtl.models import ops
from mtl.models.dropout import DropoutKey, drop, example_keys
from mtl.random_streams import generator, stream_key
from mtl.tasks.spec import TaskSpec

_INITIAL_SPREAD = 0.02


class Head(Protocol):
    """What the model and the loop need of a head; every head is an ``nn.Module`` as well.

    One that reads no hidden state but those of its sequences' first tokens may say so by an attribute
    ``first_tokens_only = True``: the encoder can then leave out all others in its last layer.
    """

    def __call__(self, hidden_TD: Tensor, batch: PackedBatch, key: DropoutKey | None) -> Tensor:
        """The task's outputs for its examples in the batch, first dimension B_t."""
        ...

    def initialise(self, seed: int, pooler: dict[str, Tensor] | None) -> None:
        """Set the first weights from a stream of (seed, task); ``pooler`` is the encoder's trained one, if any."""
        ...

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """One fp32 loss an example (B_t,)."""
        ...


class SequenceHead(nn.Module):
    """One vector a sequence, then one linear layer: classification (C classes) and regression (C = 1).

    ``first_dense`` pools the first token through a dense layer and tanh, as BERT does; ``first`` takes the first token,
    ``mean`` the mean over the sequence's tokens.
    """

    def __init__(self, spec: TaskSpec, width: int, settings: SequenceHeadSettings) -> None:
        super().__init__()
        self.task = spec.name
        self.regression = spec.kind == "regression"
        self.pooling = settings.pooling
        self.first_tokens_only = settings.pooling != "mean"
        self.rate = settings.dropout
        self.dense = nn.Linear(width, width) if settings.pooling == "first_dense" else None
        self.output = nn.Linear(width, spec.outputs)

    def initialise(self, seed: int, pooler: dict[str, Tensor] | None) -> None:
        """Weights drawn from the stream of (seed, task), biases 0; the dense layer from the encoder's pooler if given.

        No other task and no global generator is touched, so a head starts the same whatever else is trained.
        """
        draws = generator(seed, "head", self.task)
        for layer in (self.dense, self.output):
            if layer is not None:
                values = draws.standard_normal(layer.weight.shape, dtype=np.float32) * _INITIAL_SPREAD
                layer.weight.data.copy_(torch.from_numpy(values))
                layer.bias.data.zero_()
        if self.dense is not None and pooler is not None:
            self.dense.load_state_dict(pooler)

    def forward(self, hidden_TD: Tensor, batch: PackedBatch, key: DropoutKey | None) -> Tensor:
        pooled = mean_tokens(hidden_TD, batch, self.task) if self.pooling == "mean" else None
        if pooled is None:
            pooled = first_tokens(hidden_TD, batch, self.task)
        if self.dense is not None:
            pooled = torch.tanh(ops.linear(pooled, self.dense.weight, self.dense.bias))
        if self.training and key is not None and self.rate > 0.0:
            keys = example_keys(batch, key)[batch.layout.slices[self.task]]
            pooled = drop(pooled, self.rate, keys, stream_key(0, "dropout site", "head") & 0xFFFFFFFF)
        return ops.linear(pooled, self.output.weight, self.output.bias)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy (B_t,), or the squared difference to the score, in fp32."""
        if self.regression:
            return (outputs.float().squeeze(-1) - targets.float()).square()
        return F.cross_entropy(outputs.float(), targets, reduction="none")


def sequence_slice(batch: PackedBatch, task: str) -> slice:
    """The task's sequences among all of the batch; they are neighbours because its examples are."""
    per_example, chosen = batch.layout.sequences_per_example, batch.layout.slices[task]
    return slice(int(per_example[: chosen.start].sum()), int(per_example[: chosen.stop].sum()))


def token_slice(batch: PackedBatch, task: str) -> slice:
    """The task's tokens among all of the batch."""
    lengths, chosen = batch.layout.sequence_lengths, sequence_slice(batch, task)
    return slice(int(lengths[: chosen.start].sum()), int(lengths[: chosen.stop].sum()))


def first_tokens(hidden_TD: Tensor, batch: PackedBatch, task: str) -> Tensor:
    """Hidden state of the first token of each of the task's sequences (S_t, D)."""
    return hidden_TD.index_select(0, batch.sequence_offsets[:-1][sequence_slice(batch, task)])


def mean_tokens(hidden_TD: Tensor, batch: PackedBatch, task: str) -> Tensor:
    """Mean hidden state over each of the task's sequences (S_t, D), summed in fp32."""
    lengths = batch.sequence_offsets.diff()[sequence_slice(batch, task)]
    tokens = hidden_TD[token_slice(batch, task)].float()
    # Not by index_add, which on a GPU adds in no fixed order. Unsafe: the lengths are not read back to be checked.
    sums = torch.segment_reduce(tokens, "sum", lengths=lengths, axis=0, unsafe=True)
    return (sums / lengths[:, None]).to(hidden_TD.dtype)
