"""The native encoder: a BERT-shaped Hugging Face model, its own weights, our forward and backward pass.

Nothing is copied: parameters, names and checkpoints are the model's. Dropout sites carry the names they have in the
packed way, so masks are the same. Letters: T tokens, R rows (T and some filler), S sequences, D width.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.data.rows import filled_rows
from mtl.models import ops
from mtl.models.dropout import DropoutKey, drop_by
from mtl.models.encoder import Encoder
from mtl.models.kept_gradient import KeptGradient
from mtl.models.native.attention import Grouping, attend, attend_from_first, grouping
from mtl.models.native.embeddings import summed_embeddings
from mtl.models.native.layer_masks import LayerMasks, NativeMasks
from mtl.models.native.parts import LayerParts, parts_of
from mtl.models.native.residual import residual_norm


class NativeEncoder(Encoder):
    """Runs the layers over (R, D) without padding, in bf16 or fp32 as the forward context says.

    R is T rounded up (:func:`filled_rows`). Filler belongs to no sequence and gets gradients of zero. Where only first
    tokens are read, the last layer is computed for them alone.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._parts = parts_of(model)
        self.kept_gradients = (KeptGradient(self._parts.embeddings.words.weight),)

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        device = batch.token_ids.device
        dtype = torch.bfloat16 if torch.is_autocast_enabled(device.type) else torch.float32
        rows, heads = filled_rows(batch.tokens), self._parts.layers[0].heads
        with torch.autocast(device.type, enabled=False):
            groups = grouping(batch.blocks, batch.sequence_offsets[:-1], rows, heads, dtype)
            masks = NativeMasks(self._parts, batch, key if self.training else None, groups, rows)
            hidden = self._embed(batch, masks, rows, dtype)
            *layers, last = self._parts.layers
            for number, layer in enumerate(layers):
                hidden = _layer(layer, hidden, groups, masks.of_layer(number))
            if not first_only:
                return _layer(last, hidden, groups, masks.of_layer(len(layers)))[: batch.tokens]
            firsts = _last_layer(last, hidden, groups, masks.of_last_layer_at_firsts())
            # A head that reads what was not computed gets NaN, which no training survives unnoticed.
            unread = hidden.new_full((batch.tokens, hidden.shape[1]), float("nan"))
            return unread.index_copy(0, batch.sequence_offsets[:-1], firsts.index_select(0, groups.unsorted))

    def _embed(self, batch: PackedBatch, masks: NativeMasks, rows: int, dtype: torch.dtype) -> Tensor:
        parts, ids = self._parts.embeddings, self._inputs(batch)
        hidden = parts.norm(summed_embeddings(parts.words, parts.types, parts.positions, ids, self.kept_gradients[0]))
        keep = masks.of_embeddings()
        hidden = (hidden if keep is None else drop_by(hidden, keep)).to(dtype)
        hidden = F.pad(hidden, (0, 0, 0, rows - batch.tokens))
        if self._parts.projection is not None:
            hidden = ops.linear(hidden, self._parts.projection.weight, self._parts.projection.bias)
        return hidden


def _layer(layer: LayerParts, hidden_RD: Tensor, groups: Grouping, masks: LayerMasks) -> Tensor:
    projected = ops.linear_side_by_side(hidden_RD, (layer.query, layer.key, layer.value))
    return _rest(layer, attend(projected, groups, layer.heads, masks.attention), hidden_RD, masks)


def _last_layer(layer: LayerParts, hidden_RD: Tensor, groups: Grouping, masks: LayerMasks) -> Tensor:
    """(S, D) for each sequence's first token, in the blocks' order."""
    projected = ops.linear_side_by_side(hidden_RD, (layer.key, layer.value))
    firsts = hidden_RD.index_select(0, groups.firsts)
    queries = ops.linear(firsts, layer.query.weight, layer.query.bias)
    return _rest(layer, attend_from_first(queries, projected, groups, layer.heads, masks.attention), firsts, masks)


def _rest(layer: LayerParts, attended: Tensor, hidden: Tensor, masks: LayerMasks) -> Tensor:
    """What follows attention, row by row."""
    output = ops.linear(attended, layer.attention_output.weight, layer.attention_output.bias)
    hidden = residual_norm(output, hidden, layer.attention_norm, masks.attention_output)
    expanded = F.gelu(ops.linear(hidden, layer.expand.weight, layer.expand.bias))
    output = ops.linear(expanded, layer.contract.weight, layer.contract.bias)
    return residual_norm(output, hidden, layer.output_norm, masks.output)
