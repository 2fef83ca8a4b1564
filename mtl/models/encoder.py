"""The shared encoder: a packed batch in, one hidden state a token out, by one of two ways of running the model.

Letters: T tokens, D width, S sequences, L padded length.
"""

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.data.blocks import Block
from mtl.models.attention import AttentionContext, attention_context
from mtl.models.dropout import DropoutContext, DropoutKey, dropout_context, packed_dropout
from mtl.models.kept_gradient import KeptGradient
from mtl.models.working_weights import WorkingWeights


class Encoder(nn.Module):
    """What both ways share: the Hugging Face model, which inputs it takes, and its dropout sites."""

    kept_gradients: tuple[KeptGradient, ...] = ()
    """Those that the optimiser gives back once it has used them."""
    working_weights: WorkingWeights | None = None
    """Copies of weights that the optimiser may write as it steps."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.width = int(model.config.hidden_size)
        self.attention_calls = 0
        parameters = inspect.signature(model.forward).parameters
        self._takes = {name for name in ("token_type_ids", "position_ids") if name in parameters}
        self._type_count = getattr(model.config, "type_vocab_size", 0) or 0
        self._position_start = _position_start(model)
        self._sites = {module: path for path, module in model.named_modules()}

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        """Hidden states (T, D) in the batch's token order; ``key`` names the dropout masks, None in evaluation.

        ``first_only``: nobody reads any but the sequences' first tokens, so the others may hold NaN.
        """
        raise NotImplementedError

    def _run(self, inputs: dict[str, Tensor], blocks: AttentionContext, drops: DropoutContext | None) -> Tensor:
        blocks.sites = self._sites
        with attention_context(blocks), dropout_context(drops):
            hidden: Tensor = self.model(**inputs).last_hidden_state
        self.attention_calls = blocks.calls
        return hidden

    def _inputs(self, batch: PackedBatch) -> dict[str, Tensor]:
        """Token-level inputs (T,) that the model takes; types it has no embedding for are left out as zeros."""
        inputs = {"input_ids": batch.token_ids}
        if "position_ids" in self._takes:
            inputs["position_ids"] = batch.position_ids + self._position_start
        if "token_type_ids" in self._takes:
            inputs["token_type_ids"] = batch.type_ids if self._type_count > 1 else torch.zeros_like(batch.type_ids)
        return inputs


class PackedEncoder(Encoder):
    """Runs all sequences as one row of T tokens, attention kept within each sequence; no padding anywhere."""

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        drops = None if key is None else packed_dropout(batch, key)
        inputs = {name: tensor[None] for name, tensor in self._inputs(batch).items()}
        return self._run(inputs, AttentionContext(batch.blocks.blocks, batch.blocks.inverse), drops)[0]


class PaddedEncoder(Encoder):
    """Unpacks, runs the model on (S, L) with a mask, and packs again: for any model, and the reference in tests.

    Its mask is made here and read as one, so a GPU waits several times in each pass; the other ways never do.
    """

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None, *, first_only: bool = False) -> Tensor:
        lengths, device = batch.layout.sequence_lengths, batch.token_ids.device
        places = np.arange(int(lengths.max()))[None, :]
        valid_host = places < lengths[:, None]
        offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        index = torch.from_numpy(offsets[:, None] + np.where(valid_host, places, 0)).to(device)
        valid = torch.from_numpy(valid_host).to(device)
        inputs = {name: tensor[index] for name, tensor in self._inputs(batch).items()}
        inputs["input_ids"] = inputs["input_ids"].masked_fill(~valid, int(self.model.config.pad_token_id or 0))
        inputs["attention_mask"] = valid.long()
        drops = None if key is None else packed_dropout(batch, key)
        if drops is not None:
            drops.token_keys = drops.token_keys[0][index]
        hidden = self._run(inputs, AttentionContext([Block(index, valid)]), drops)
        return hidden[valid]


def _position_start(model: Any) -> int:
    """First position id: RoBERTa's family keeps the ids up to padding_idx for padding (its embedding says so)."""
    for path, module in model.named_modules():
        if path.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            return int(module.padding_idx) + 1
    return 0
