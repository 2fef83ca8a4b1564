"""Hashes of a pass's rows for every dropout site, which all masks of the pass follow from.

Sites have the names and keys that they have in the packed way. Letters: R rows (tokens and some filler).
"""

import torch.nn.functional as F
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.models.dropout import DropoutKey, packed_dropout
from mtl.models.masks import site_rows
from mtl.models.native.parts import EncoderParts, LayerParts


class SiteRows:
    """The hashes of all sites together; none where ``key`` is None, for then nothing is dropped."""

    def __init__(self, parts: EncoderParts, batch: PackedBatch, key: DropoutKey | None, rows: int) -> None:
        self._rows: dict[str, Tensor] = {}
        if key is None:
            return
        drops = packed_dropout(batch, key)
        sites = [parts.embeddings.dropout.site, *(site for layer in parts.layers for site in _sites(layer))]
        keys = F.pad(drops.token_keys[0], (0, rows - batch.tokens))
        hashes = site_rows(keys, [drops.site_key(site) for site in sites])
        self._rows = dict(zip(sites, hashes.unbind(0), strict=True))

    def of(self, site: str, rate: float) -> Tensor | None:
        """int32 hashes (R,) of the rows for a site with this rate; None where nothing is dropped there."""
        return self._rows[site] if self._rows and rate > 0.0 else None


def _sites(layer: LayerParts) -> tuple[str, str, str]:
    return layer.attention_site, layer.attention_dropout.site, layer.output_dropout.site
