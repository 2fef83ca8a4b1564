"""Which Hugging Face encoders are BERT-shaped, and where in them the parts are that the native pass reads."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from mtl.models.dropout import KeyedDropout

# BERT's layers under other names of the embeddings; MiniLM and MacBERT are BertModels.
_SHAPED = ("BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel", "ElectraModel")


@dataclass(frozen=True)
class LayerParts:
    """One layer: attention, then the feed-forward pair, each followed by dropout, the residual and a norm."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    heads: int
    attention_site: str
    attention_rate: float
    attention_output: nn.Linear
    attention_dropout: KeyedDropout
    attention_norm: nn.LayerNorm
    expand: nn.Linear
    contract: nn.Linear
    output_dropout: KeyedDropout
    output_norm: nn.LayerNorm

    @property
    def joint_layers(self) -> tuple[tuple[nn.Linear, ...], ...]:
        """All linear layers, those on the same inputs together."""
        return (self.query, self.key, self.value), (self.attention_output,), (self.expand,), (self.contract,)


@dataclass(frozen=True)
class EmbeddingParts:
    """Three tables whose entries are added up, a norm and dropout."""

    words: nn.Embedding
    types: nn.Embedding
    positions: nn.Embedding
    norm: nn.LayerNorm
    dropout: KeyedDropout


@dataclass(frozen=True)
class EncoderParts:
    """The embeddings, the projection to the layers' width where it differs (ELECTRA), and the layers."""

    embeddings: EmbeddingParts
    projection: nn.Linear | None
    layers: tuple[LayerParts, ...]


def is_bert_shaped(model: Any) -> bool:
    """Whether the native pass computes what this model does: post-norm layers, exact GELU, learned positions."""
    config = model.config
    return (
        type(model).__name__ in _SHAPED
        and config.hidden_act == "gelu"
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and not getattr(config, "is_decoder", False)
        and not getattr(config, "add_cross_attention", False)
    )


def parts_of(model: Any) -> EncoderParts:
    """The parts of a model for which :func:`is_bert_shaped` holds, its dropout replaced by keyed dropout."""
    paths = {module: path for path, module in model.named_modules()}
    heads = int(model.config.num_attention_heads)
    layers = tuple(_layer(layer, heads, paths) for layer in model.encoder.layer)
    return EncoderParts(_embeddings(model.embeddings), getattr(model, "embeddings_project", None), layers)


def _embeddings(embeddings: Any) -> EmbeddingParts:
    return EmbeddingParts(
        words=embeddings.word_embeddings,
        types=embeddings.token_type_embeddings,
        positions=embeddings.position_embeddings,
        norm=embeddings.LayerNorm,
        dropout=embeddings.dropout,
    )


def _layer(layer: Any, heads: int, paths: dict[nn.Module, str]) -> LayerParts:
    attention = layer.attention.self
    return LayerParts(
        query=attention.query,
        key=attention.key,
        value=attention.value,
        heads=heads,
        attention_site=paths[attention],
        attention_rate=float(attention.dropout.p),
        attention_output=layer.attention.output.dense,
        attention_dropout=layer.attention.output.dropout,
        attention_norm=layer.attention.output.LayerNorm,
        expand=layer.intermediate.dense,
        contract=layer.output.dense,
        output_dropout=layer.output.dropout,
        output_norm=layer.output.LayerNorm,
    )
