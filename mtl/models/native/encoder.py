"""The native encoder: a BERT-shaped Hugging Face model, its own weights, our forward and backward pass.

Nothing is copied: parameters, names and checkpoints are the model's. Dropout sites carry the names they have in the
packed way, so masks are the same. Letters: T tokens, R rows (T and some filler), S sequences, D width.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.data.rows import filled_rows
from mtl.models import ops
from mtl.models.dropout import DropoutKey, drop_by
from mtl.models.encoder import Encoder
from mtl.models.kept_gradient import KeptGradient
from mtl.models.kernels.compiled import compiled_kernels
from mtl.models.masks import features_place, keep_masks
from mtl.models.native.attention import grouping
from mtl.models.native.embeddings import summed_embeddings
from mtl.models.native.kernel_steps import KernelSteps
from mtl.models.native.parts import LayerParts, parts_of
from mtl.models.native.site_rows import SiteRows
from mtl.models.native.steps import LayerSteps, Steps
from mtl.models.native.torch_steps import TorchSteps
from mtl.models.working_weights import WorkingWeights


class NativeEncoder(Encoder):
    """Runs the layers over (R, D) without padding, in bf16 or fp32 as the forward context says.

    R is T rounded up (:func:`filled_rows`). Filler belongs to no sequence and gets gradients of zero. Where only first
    tokens are read, the last layer is computed for them alone.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._parts = parts_of(model)
        self.kept_gradients = (KeptGradient(self._parts.embeddings.words.weight),)
        self.working_weights = WorkingWeights([group for layer in self._parts.layers for group in layer.joint_layers])

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        device = batch.token_ids.device
        dtype = torch.bfloat16 if torch.is_autocast_enabled(device.type) else torch.float32
        rows = filled_rows(batch.tokens)
        with torch.autocast(device.type, enabled=False):
            sites = SiteRows(self._parts, batch, key if self.training else None, rows)
            steps = self._steps(batch, sites, rows, dtype)
            hidden = self._embed(batch, sites, rows, dtype)
            *layers, last = self._parts.layers
            for number, layer in enumerate(layers):
                hidden = self._layer(layer, hidden, steps.layer(number))
            if not first_only:
                return self._layer(last, hidden, steps.layer(len(layers)))[: batch.tokens]
            firsts = self._last_layer(last, hidden, steps.firsts, steps.last_layer_at_firsts())
            # A head that reads what was not computed gets NaN, which no training survives unnoticed.
            unread = hidden.new_full((batch.tokens, hidden.shape[1]), float("nan"))
            return unread.index_copy(0, batch.sequence_offsets[:-1], steps.in_batch_order(firsts))

    def _steps(self, batch: PackedBatch, sites: SiteRows, rows: int, dtype: torch.dtype) -> Steps:
        library = compiled_kernels() if batch.token_ids.device.type == "cpu" else None
        if library is not None:
            return KernelSteps(library, self._parts, batch, sites)
        groups = grouping(batch.blocks, batch.sequence_offsets[:-1], rows, self._parts.layers[0].heads, dtype)
        return TorchSteps(self._parts, groups, sites)

    def _embed(self, batch: PackedBatch, sites: SiteRows, rows: int, dtype: torch.dtype) -> Tensor:
        parts, ids = self._parts.embeddings, self._inputs(batch)
        hidden = parts.norm(summed_embeddings(parts.words, parts.types, parts.positions, ids, self.kept_gradients[0]))
        dropped = sites.of(parts.dropout.site, parts.dropout.p)
        if dropped is not None:
            place = features_place(dropped[: batch.tokens], hidden.shape[1], parts.dropout.p)
            hidden = drop_by(hidden, *keep_masks([place]))
        hidden = hidden.to(dtype)
        hidden = F.pad(hidden, (0, 0, 0, rows - batch.tokens))
        if self._parts.projection is not None:
            hidden = ops.linear(hidden, self._parts.projection.weight, self._parts.projection.bias)
        return hidden

    def _layer(self, layer: LayerParts, hidden_RD: Tensor, steps: LayerSteps) -> Tensor:
        projected = self._linear(hidden_RD, layer.query, layer.key, layer.value)
        return self._rest(layer, steps.attend(projected), hidden_RD, steps)

    def _last_layer(self, layer: LayerParts, hidden_RD: Tensor, firsts: Tensor, steps: LayerSteps) -> Tensor:
        """(S, D) for each sequence's first token, in the order of ``firsts``, their rows (S,)."""
        projected = self._linear(hidden_RD, layer.key, layer.value)
        hidden = hidden_RD.index_select(0, firsts)
        queries = self._linear(hidden, layer.query)
        return self._rest(layer, steps.attend_from_first(queries, projected), hidden, steps)

    def _rest(self, layer: LayerParts, attended: Tensor, hidden: Tensor, steps: LayerSteps) -> Tensor:
        """What follows attention, row by row."""
        hidden = steps.attention_norm(self._linear(attended, layer.attention_output), hidden)
        expanded = F.gelu(self._linear(hidden, layer.expand))
        return steps.output_norm(self._linear(expanded, layer.contract), hidden)

    def _linear(self, inputs: Tensor, *layers: nn.Linear) -> Tensor:
        return ops.linear_side_by_side(inputs, layers, self.working_weights)
