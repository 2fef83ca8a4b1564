"""A layer's steps by torch's operations, on any device: the masks of a layer are hashed together, as it begins.

Letters: R rows (tokens and some filler), S sequences, L length of a block.
"""

from collections.abc import Sequence

from torch import Tensor

from mtl.models.masks import KeepMask, MaskedPlace, attention_place, features_place, keep_masks
from mtl.models.native.attention import Grouping, attend, attend_from_first
from mtl.models.native.parts import EncoderParts, LayerParts
from mtl.models.native.residual import residual_norm
from mtl.models.native.site_rows import SiteRows


class TorchSteps:
    """The steps of one pass, attention by blocks of sequences of similar length."""

    def __init__(self, parts: EncoderParts, groups: Grouping, sites: SiteRows) -> None:
        self._parts, self._groups, self._sites = parts, groups, sites

    @property
    def firsts(self) -> Tensor:
        """First tokens in the order of the blocks."""
        return self._groups.firsts

    def in_batch_order(self, firsts_SD: Tensor) -> Tensor:
        """From the order of the blocks to that of the batch."""
        return firsts_SD.index_select(0, self._groups.unsorted)

    def layer(self, number: int) -> "TorchLayerSteps":
        """Masks (S, H, L, L) and (R, D)."""
        return self._steps(self._parts.layers[number], first=False)

    def last_layer_at_firsts(self) -> "TorchLayerSteps":
        """Masks (S, H, 1, L) and (S, D), in the order of the blocks."""
        return self._steps(self._parts.layers[-1], first=True)

    def _steps(self, layer: LayerParts, *, first: bool) -> "TorchLayerSteps":
        """Masks of all sites hashed together, and dealt out in the same order."""
        places: list[MaskedPlace] = []
        attended = self._sites.of(layer.attention_site, layer.attention_rate)
        if attended is not None:
            for block in self._groups.blocks:
                queries = attended[block.index[:, :1] if first else block.index]
                places.append(attention_place(queries, layer.heads, block.index.shape[1], layer.attention_rate))
        outputs = [
            self._sites.of(dropout.site, dropout.p) for dropout in (layer.attention_dropout, layer.output_dropout)
        ]
        for dropout, rows in zip((layer.attention_dropout, layer.output_dropout), outputs, strict=True):
            if rows is not None:
                rows = rows.index_select(0, self._groups.firsts) if first else rows
                places.append(features_place(rows, layer.contract.out_features, dropout.p))
        masks = iter(keep_masks(places) if places else ())
        attention = [None if attended is None else next(masks) for _ in self._groups.blocks]
        return TorchLayerSteps(
            layer, self._groups, attention, *(None if each is None else next(masks) for each in outputs)
        )


class TorchLayerSteps:
    """The steps of one layer; ``attention`` holds the mask of each block."""

    def __init__(
        self,
        layer: LayerParts,
        groups: Grouping,
        attention: Sequence[KeepMask | None],
        attention_output: KeepMask | None,
        output: KeepMask | None,
    ) -> None:
        self._layer, self._groups, self._attention = layer, groups, attention
        self._attention_output, self._output = attention_output, output

    def attend(self, projected_RE: Tensor) -> Tensor:
        """By blocks."""
        return attend(projected_RE, self._groups, self._layer.heads, self._attention)

    def attend_from_first(self, queries_SD: Tensor, projected_RE: Tensor) -> Tensor:
        """By blocks, in their order."""
        return attend_from_first(queries_SD, projected_RE, self._groups, self._layer.heads, self._attention)

    def attention_norm(self, output_RD: Tensor, residual_RD: Tensor) -> Tensor:
        """Dropout, residual and norm."""
        return residual_norm(output_RD, residual_RD, self._layer.attention_norm, self._attention_output)

    def output_norm(self, output_RD: Tensor, residual_RD: Tensor) -> Tensor:
        """Dropout, residual and norm."""
        return residual_norm(output_RD, residual_RD, self._layer.output_norm, self._output)
