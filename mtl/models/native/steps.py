"""Attention, dropout, residuals and norms of a layer: what the native pass asks of those who do it.

Letters: R rows (tokens and some filler), S sequences, D width.
"""

from typing import Protocol

from torch import Tensor


class LayerSteps(Protocol):
    """The steps of one layer, with the dropout that its sites have in this pass.

    Where the layer is computed for first tokens alone, all rows but the projected ones are theirs (S, D), in the order
    of :attr:`Steps.firsts`.
    """

    def attend(self, projected_RE: Tensor) -> Tensor:
        """Attended values (R, D) from queries, keys and values side by side (R, 3 D); filler gets zeros."""
        ...

    def attend_from_first(self, queries_SD: Tensor, projected_RE: Tensor) -> Tensor:
        """Those of first tokens alone (S, D), from their queries and all keys and values side by side (R, 2 D)."""
        ...

    def attention_norm(self, output_RD: Tensor, residual_RD: Tensor) -> Tensor:
        """``norm(residual + dropout(output))`` of the attention's output."""
        ...

    def output_norm(self, output_RD: Tensor, residual_RD: Tensor) -> Tensor:
        """``norm(residual + dropout(output))`` of the layer's output."""
        ...


class Steps(Protocol):
    """The steps of one pass over a batch."""

    @property
    def firsts(self) -> Tensor:
        """Rows (S,) of the sequences' first tokens, in the order that these steps want them in."""
        ...

    def in_batch_order(self, firsts_SD: Tensor) -> Tensor:
        """Rows in the order of ``firsts`` put into that of the batch's sequences."""
        ...

    def layer(self, number: int) -> LayerSteps:
        """The steps of the layer with this number, for all rows."""
        ...

    def last_layer_at_firsts(self) -> LayerSteps:
        """The steps of the last layer, for first tokens alone."""
        ...
