"""The native encoder: a BERT-shaped Hugging Face model, its own weights, our forward and backward pass.

Nothing is copied: parameters, names and checkpoints are the model's. Dropout sites carry the names they have in the
packed way, so masks are the same. Letters: T tokens, S sequences, D width.
"""

from typing import Any

import torch
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.models import ops
from mtl.models.dropout import (
    DropoutContext,
    DropoutKey,
    KeepMask,
    KeyedDropout,
    dropout_context,
    keep_features,
    packed_dropout,
)
from mtl.models.encoder import Encoder
from mtl.models.native.attention import Grouping, attend, attend_from_first, grouping
from mtl.models.native.parts import LayerParts, parts_of
from mtl.models.native.residual import residual_norm


class NativeEncoder(Encoder):
    """Runs the layers over (T, D) without padding, in bf16 or fp32 as the forward context says.

    Where only first tokens are read, the last layer is computed for them alone.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._parts = parts_of(model)

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        device = batch.token_ids.device
        dtype = torch.bfloat16 if torch.is_autocast_enabled(device.type) else torch.float32
        drops = None if key is None or not self.training else packed_dropout(batch, key)
        with torch.autocast(device.type, enabled=False):
            groups = grouping(batch.blocks, batch.sequence_offsets[:-1], dtype)
            hidden = self._embed(batch, drops).to(dtype)
            if self._parts.projection is not None:
                hidden = ops.linear(hidden, self._parts.projection.weight, self._parts.projection.bias)
            *layers, last = self._parts.layers
            for layer in layers:
                hidden = _layer(layer, hidden, groups, drops)
            if not first_only:
                return _layer(last, hidden, groups, drops)
            firsts = _last_layer(last, hidden, groups, drops).index_select(0, groups.unsorted)
            # A head that reads what was not computed gets NaN, which no training survives unnoticed.
            unread = torch.full_like(hidden, float("nan"), requires_grad=False)
            return unread.index_copy(0, batch.sequence_offsets[:-1], firsts)

    def _embed(self, batch: PackedBatch, drops: DropoutContext | None) -> Tensor:
        inputs = {name: tensor[None] for name, tensor in self._inputs(batch).items()}
        with dropout_context(drops):
            hidden: Tensor = self._parts.embeddings(**inputs)
        return hidden[0]


def _layer(layer: LayerParts, hidden_TD: Tensor, groups: Grouping, drops: DropoutContext | None) -> Tensor:
    projected = ops.linear_side_by_side(hidden_TD, (layer.query, layer.key, layer.value))
    site_key = _site_key(drops, layer)
    attended = attend(projected, groups, layer.heads, _if_any(drops, layer), layer.attention_rate, site_key)
    return _rest(layer, attended, hidden_TD, drops, None if drops is None else drops.token_keys[0])


def _last_layer(layer: LayerParts, hidden_TD: Tensor, groups: Grouping, drops: DropoutContext | None) -> Tensor:
    """(S, D) for each sequence's first token, in the blocks' order."""
    projected = ops.linear_side_by_side(hidden_TD, (layer.key, layer.value))
    firsts = hidden_TD.index_select(0, groups.firsts)
    queries = ops.linear(firsts, layer.query.weight, layer.query.bias)
    site_key = _site_key(drops, layer)
    attended = attend_from_first(
        queries, projected, groups, layer.heads, _if_any(drops, layer), layer.attention_rate, site_key
    )
    return _rest(layer, attended, firsts, drops, None if drops is None else drops.token_keys[0][groups.firsts])


def _rest(
    layer: LayerParts, attended: Tensor, hidden: Tensor, drops: DropoutContext | None, keys: Tensor | None
) -> Tensor:
    """What follows attention, row by row."""
    output = ops.linear(attended, layer.attention_output.weight, layer.attention_output.bias)
    hidden = residual_norm(output, hidden, layer.attention_norm, _keep(layer.attention_dropout, drops, keys, output))
    expanded = torch.nn.functional.gelu(ops.linear(hidden, layer.expand.weight, layer.expand.bias))
    output = ops.linear(expanded, layer.contract.weight, layer.contract.bias)
    return residual_norm(output, hidden, layer.output_norm, _keep(layer.output_dropout, drops, keys, output))


def _keep(dropout: KeyedDropout, drops: DropoutContext | None, keys: Tensor | None, rows: Tensor) -> KeepMask | None:
    if drops is None or keys is None or dropout.p == 0.0:
        return None
    return keep_features(keys, rows.shape[-1], dropout.p, drops.site_key(dropout.site))


def _site_key(drops: DropoutContext | None, layer: LayerParts) -> int:
    return 0 if _if_any(drops, layer) is None else drops.site_key(layer.attention_site)  # type: ignore[union-attr]


def _if_any(drops: DropoutContext | None, layer: LayerParts) -> DropoutContext | None:
    return drops if layer.attention_rate > 0.0 else None
