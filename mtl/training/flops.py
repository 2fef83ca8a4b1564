"""Floating-point operations of training, counted from the model and the batch, not measured.

Forward and backward together are three forwards: a matrix product's two gradients cost one product each. Per forward,
2 operations a weight of a linear layer and token (or sequence, in a head), and 4 d s^2 a layer for attention over a
sequence of s tokens and width d. Embedding look-ups, norms and softmax count zero.
"""

from dataclasses import dataclass
from typing import Self

from torch import nn

from mtl.data.batches import UpdateWork
from mtl.models.multitask import MultitaskModel


@dataclass(frozen=True)
class FlopCounter:
    """Counts the useful work of training batches; filler and padding are not counted."""

    per_token: float
    per_squared_length: float
    per_sequence: dict[str, float]

    @classmethod
    def of(cls, model: MultitaskModel) -> Self:
        """The counter of a model, from its linear layers and its width."""
        config = model.encoder.model.config
        layers, width = int(config.num_hidden_layers), model.encoder.width
        # ALBERT passes its groups of layers several times over.
        passes = layers / int(getattr(config, "num_hidden_groups", layers))
        encoder = sum(
            module.weight.numel() * (passes if "layer" in name else 1)
            for name, module in model.encoder.model.named_modules()
            if isinstance(module, nn.Linear)
        )
        heads = {
            task: 2.0 * sum(m.weight.numel() for m in model.head_module(task).modules() if isinstance(m, nn.Linear))
            for task in model.tasks
        }
        return cls(2.0 * encoder, 4.0 * layers * width, heads)

    def training(self, work: UpdateWork) -> float:
        """Operations of one forward and backward over an update, whatever it is cut into."""
        heads = sum(self.per_sequence[task] * count for task, count in work.sequences.items())
        return 3.0 * (self.per_token * work.tokens + self.per_squared_length * work.squared_lengths + heads)
