"""The dropout masks of a native pass: hashed for a layer at a time, of rows hashed for all sites at once.

Sites have the names and keys that they have in the packed way. Letters: R rows (tokens and some filler), S sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import torch.nn.functional as F
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.models.dropout import DropoutKey, packed_dropout
from mtl.models.masks import KeepMask, MaskedPlace, attention_place, features_place, keep_masks, site_rows
from mtl.models.native.attention import Grouping
from mtl.models.native.parts import EncoderParts, LayerParts


@dataclass(frozen=True)
class LayerMasks:
    """Masks of attention by block (S, H, Lq, L), of its output and of the layer's; None where nothing is dropped."""

    attention: Sequence[KeepMask | None]
    attention_output: KeepMask | None
    output: KeepMask | None


class NativeMasks:
    """All masks of one pass; none where ``key`` is None."""

    def __init__(
        self, parts: EncoderParts, batch: PackedBatch, key: DropoutKey | None, groups: Grouping, rows: int
    ) -> None:
        self._parts, self._groups, self._tokens = parts, groups, batch.tokens
        self._rows: dict[str, Tensor] = {}
        if key is None:
            return
        drops = packed_dropout(batch, key)
        sites = [parts.embeddings.dropout.site, *(site for layer in parts.layers for site in _sites(layer))]
        keys = F.pad(drops.token_keys[0], (0, rows - batch.tokens))
        hashes = site_rows(keys, [drops.site_key(site) for site in sites])
        self._rows = dict(zip(sites, hashes.unbind(0), strict=True))

    def of_embeddings(self) -> KeepMask | None:
        """The mask (T, E)."""
        parts = self._parts.embeddings
        rate = parts.dropout.p if self._rows else 0.0
        if rate == 0.0:
            return None
        rows = self._rows[parts.dropout.site][: self._tokens]
        [keep] = keep_masks([features_place(rows, parts.words.embedding_dim, rate)])
        return keep

    def of_layer(self, number: int) -> LayerMasks:
        """The masks (R, D) and (S, H, L, L) of the layer with this number."""
        layer = self._parts.layers[number]
        return self._masks(layer, {site: self._rows[site] for site in _sites(layer) if self._rows}, first=False)

    def of_last_layer_at_firsts(self) -> LayerMasks:
        """The masks (S, D) and (S, H, 1, L) of the last layer for first tokens alone, in the order of the blocks."""
        layer, firsts = self._parts.layers[-1], self._groups.firsts
        rows = {site: self._rows[site].index_select(0, firsts) for site in _sites(layer)[1:] if self._rows}
        if self._rows:
            rows[layer.attention_site] = self._rows[layer.attention_site]
        return self._masks(layer, rows, first=True)

    def _masks(self, layer: LayerParts, rows: dict[str, Tensor], *, first: bool) -> LayerMasks:
        """Those of a layer whose sites have these rows: hashed together, and dealt out in the same order."""
        blocks = self._groups.blocks
        attended = bool(rows) and layer.attention_rate > 0.0
        places: list[MaskedPlace] = []
        if attended:
            hashes = rows[layer.attention_site]
            for block in blocks:
                queries = hashes[block.index[:, :1] if first else block.index]
                places.append(attention_place(queries, layer.heads, block.index.shape[1], layer.attention_rate))
        outputs = (layer.attention_dropout, layer.output_dropout)
        dropped = [bool(rows) and dropout.p > 0.0 for dropout in outputs]
        for dropout in compress(outputs, dropped):
            places.append(features_place(rows[dropout.site], layer.contract.out_features, dropout.p))
        masks = iter(keep_masks(places) if places else ())
        attention = [next(masks) if attended else None for _ in blocks]
        return LayerMasks(attention, *[next(masks) if each else None for each in dropped])


def _sites(layer: LayerParts) -> tuple[str, str, str]:
    return layer.attention_site, layer.attention_dropout.site, layer.output_dropout.site
