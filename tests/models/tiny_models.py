"""Tiny encoders of every family, token stores written by hand, and ways to compare two runs of a model."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    ModernBertConfig,
    ModernBertModel,
    RobertaConfig,
    RobertaModel,
)

from mtl.config.encoder import SequenceHeadSettings
from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.plan import UpdatePlan
from mtl.data.store import TokenStore
from mtl.models.heads import SequenceHead
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.tasks.spec import SplitSpec, TaskSpec

VOCABULARY = 60
WIDTH = 16
MAX_POSITIONS = 48
"""Fewer than the tokens of a packed batch, so that positions that do not restart would be out of range."""
WINDOW = 4
"""How many tokens a sliding layer of the tiny ModernBERT sees to either side."""
PACKABLE = ("bert", "roberta", "electra", "albert", "distilbert", "modernbert")
FAMILIES = (*PACKABLE, "deberta")
NATIVE = ("bert", "roberta", "electra")
UNPADDED = (*((family, "packed") for family in PACKABLE), *((family, "native") for family in NATIVE))

_SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": MAX_POSITIONS,
}


def tiny_model(family: str, rate: float = 0.1) -> Any:
    """A plain, unmodified transformers encoder with the same random weights at every call, without a pooler."""
    return copy.deepcopy(_built(family, rate))


@cache
def _built(family: str, rate: float) -> Any:
    both = {"hidden_dropout_prob": rate, "attention_probs_dropout_prob": rate}
    builders: dict[str, Callable[[], Any]] = {
        "bert": lambda: BertModel(BertConfig(**_SHAPE, **both), add_pooling_layer=False),
        "roberta": lambda: RobertaModel(RobertaConfig(**_SHAPE, **both, type_vocab_size=1), add_pooling_layer=False),
        "electra": lambda: ElectraModel(ElectraConfig(**_SHAPE, **both, embedding_size=12)),
        "albert": lambda: AlbertModel(AlbertConfig(**_SHAPE, **both, embedding_size=12), add_pooling_layer=False),
        "distilbert": lambda: _distilbert(rate),
        "modernbert": lambda: _modernbert(rate),
        "deberta": lambda: _deberta(both),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = builders[family]()
        # Freshly built models have zero biases and unit norms, which would hide a wrong use of them.
        for parameter in model.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model


def _distilbert(rate: float) -> Any:
    shape = {"vocab_size": VOCABULARY, "dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
    rates = {"dropout": rate, "attention_dropout": rate}
    return DistilBertModel(DistilBertConfig(**shape, **rates, max_position_embeddings=MAX_POSITIONS))


def _modernbert(rate: float) -> Any:
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    rates = {"attention_dropout": rate, "embedding_dropout": rate, "mlp_dropout": rate}
    layers = {"local_attention": 2 * WINDOW, "layer_types": ["full_attention", "sliding_attention"]}
    return ModernBertModel(ModernBertConfig(**_SHAPE, **special, **rates, **layers))


def _deberta(rates: Mapping[str, float]) -> Any:
    relative = {
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_buckets": 4,
        "share_att_key": True,
    }
    return DebertaV2Model(DebertaV2Config(**_SHAPE, **rates, **relative, position_biased_input=False))


def make_store(examples: Sequence[Sequence[int]], seed: int, labels: Any = None) -> TokenStore:
    """Random tokens and types for examples given as the lengths of their sequences."""
    draws = np.random.default_rng(seed)
    lengths = np.array([length for example in examples for length in example], dtype=np.int64)
    total = int(lengths.sum())
    return TokenStore(
        tokens=draws.integers(5, VOCABULARY, total).astype(np.uint32),
        types=draws.integers(0, 2, total).astype(np.uint8),
        sequence_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        example_offsets=np.cumsum([0, *(len(example) for example in examples)]).astype(np.int64),
        labels=np.zeros(0, dtype=np.int64) if labels is None else np.asarray(labels),
        text_keys=np.zeros((len(examples), 1), dtype=np.uint64),
        fingerprint="toy",
        data_fingerprint="toy",
        truncated=0,
        empty=0,
    )


TASKS = ("toy/pairs", "toy/v1.1", "toy/scores")


def mixed_source() -> BatchSource:
    """Three tasks of one sequence an example, lengths from 1 to beyond twice the window and one block of sixteen."""
    return BatchSource(
        {
            TASKS[0]: make_store([[9], [33], [1], [16], [17]], 1, np.array([0, 1, 1, 0, 1])),
            TASKS[1]: make_store([[12], [3], [40]], 2, np.array([2, 0, 1])),
            TASKS[2]: make_store([[5], [21]], 3, np.array([0.5, -1.0], dtype=np.float32)),
        }
    )


def whole_plan(source: BatchSource, step: int = 3) -> UpdatePlan:
    """An update of every example of every task, in a shuffled order."""
    sizes = [store.rows for store in source.stores.values()]
    tasks, rows = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
    lengths = np.concatenate([store.lengths() for store in source.stores.values()])
    order = np.random.default_rng(5).permutation(tasks.size)
    return UpdatePlan(step, tasks[order].astype(np.int64), rows[order].astype(np.int64), lengths[order])


def mixed_batch() -> PackedBatch:
    """The whole update of :func:`mixed_source` as one batch."""
    source = mixed_source()
    plan = whole_plan(source)
    return source.batch(plan, np.arange(plan.rows.size))


def toy_spec(name: str, outputs: int) -> TaskSpec:
    """A classification task of that many classes, a regression task for one output."""
    splits = {"train": SplitSpec(file="train.tsv"), "dev": SplitSpec(file="dev.tsv")}
    common = {"name": name, "directory": "toy", "text_columns": ("text",), "label_column": "label", "splits": splits}
    if outputs == 1:
        scored = {"kind": "regression", "score_range": (0.0, 5.0), "metrics": ("pearson",), "primary": ("pearson",)}
        return TaskSpec.model_validate(common | scored)
    labels = tuple(f"class {number}" for number in range(outputs))
    scored = {"kind": "classification", "labels": labels, "metrics": ("accuracy",), "primary": ("accuracy",)}
    return TaskSpec.model_validate(common | scored)


def mixed_model(family: str, batching: str, rate: float = 0.1, *, first_only: bool = False) -> MultitaskModel:
    """An encoder and heads for :func:`mixed_batch`, in training mode; every way of pooling is there once.

    With ``first_only`` no head reads any but the first tokens.
    """
    heads: dict[str, nn.Module] = {}
    for task, outputs, pooling in zip(
        TASKS, (2, 3, 1), ("first_dense", "first" if first_only else "mean", "first"), strict=True
    ):
        settings = SequenceHeadSettings.model_validate({"pooling": pooling, "dropout": rate})
        head = SequenceHead(toy_spec(task, outputs), WIDTH, settings)
        head.initialise(1, None)
        heads[task] = head
    return MultitaskModel(wrap_model(tiny_model(family, rate), batching), heads).train()


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """The gradient of every parameter, zeros where the loss does not depend on it."""
    names = [name for name, _ in model.named_parameters()]
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
    return dict(zip(names, found, strict=True))


def relative_difference(first: Tensor, second: Tensor) -> float:
    """Largest difference in units of the second's largest value; NaN, which no comparison passes, if both are zero."""
    first, second = first.detach(), second.detach()
    return float((first - second).abs().max() / second.abs().max())


def plain_hidden(model: Any, batch: PackedBatch, *, types: bool) -> list[Tensor]:
    """Hidden states of every sequence by an unmodified model over a padded batch with an attention mask."""
    lengths = batch.layout.sequence_lengths.tolist()
    rows = batch.token_ids.split(lengths)
    tokens = nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=int(model.config.pad_token_id or 0))
    mask = nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    inputs = {"input_ids": tokens, "attention_mask": mask}
    if types:
        inputs["token_type_ids"] = nn.utils.rnn.pad_sequence(list(batch.type_ids.split(lengths)), batch_first=True)
    hidden = model(**inputs).last_hidden_state
    return [hidden[row, :length] for row, length in enumerate(lengths)]
