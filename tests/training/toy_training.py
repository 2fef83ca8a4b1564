"""A training small enough to run in milliseconds: three tasks of unequal sizes and lengths over a tiny BERT."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from mtl.config.encoder import SequenceHeadSettings
from mtl.config.training import OptimizerSettings
from mtl.data.batches import BatchSource
from mtl.data.drawn_plan import DrawnPlanner, UpdateSize
from mtl.data.store import TokenStore
from mtl.data.streams import TaskStream
from mtl.models.encoder import Encoder
from mtl.models.heads import SequenceHead
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.runtime.ranks import ALONE, Ranks
from mtl.sampling.samplers import FixedSampler, Sampler
from mtl.tasks.spec import SplitSpec, TaskSpec
from mtl.training.optimizer import Optimizer, named_parameters
from mtl.training.prepared import Preparation, PreparedUpdate
from mtl.training.update import Updater, UpdateResult
from mtl.weighting.constant import ConstantWeights
from mtl.weighting.protocol import Weighting

VOCABULARY, WIDTH = 50, 16
_CPU = torch.device("cpu")
PAIRS, THREE, SCORES = TASKS = ("toy/pairs", "toy/three.ways", "toy/scores")
OUTPUTS = {PAIRS: 2, THREE: 3, SCORES: 1}
SIZES = {PAIRS: 40, THREE: 90, SCORES: 15}


def toy_spec(task: str) -> TaskSpec:
    """The task's description: classes for two of them, a score for the third."""
    splits = {"train": SplitSpec(file="train.tsv"), "dev": SplitSpec(file="dev.tsv")}
    common = {"name": task, "directory": "toy", "text_columns": ("text",), "label_column": "label", "splits": splits}
    if OUTPUTS[task] == 1:
        scored = {"kind": "regression", "score_range": (0.0, 5.0), "metrics": ("pearson",), "primary": ("pearson",)}
        return TaskSpec.model_validate(common | scored)
    labels = tuple(f"class {number}" for number in range(OUTPUTS[task]))
    scored = {"kind": "classification", "labels": labels, "metrics": ("accuracy",), "primary": ("accuracy",)}
    return TaskSpec.model_validate(common | scored)


def toy_store(task: str, rows: int | None = None, *, longest: int = 20) -> TokenStore:
    """Random rows of 2 to ``longest`` tokens, longer on average in one task than in another, with random labels."""
    draws = np.random.default_rng(TASKS.index(task) + 11)
    count = SIZES[task] if rows is None else rows
    lengths = draws.integers(2, longest - 4 * TASKS.index(task) + 1, count)
    total = int(lengths.sum())
    labels = (
        draws.normal(2.5, 1.0, count).astype(np.float32) if task == SCORES else draws.integers(0, OUTPUTS[task], count)
    )
    return TokenStore(
        tokens=draws.integers(1, VOCABULARY, total).astype(np.uint32),
        types=draws.integers(0, 2, total).astype(np.uint8),
        sequence_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        example_offsets=np.arange(count + 1, dtype=np.int64),
        labels=labels,
        text_keys=np.zeros((count, 1), dtype=np.uint64),
        fingerprint="toy",
        data_fingerprint="toy",
        truncated=0,
        empty=0,
    )


def toy_bert(dropout: float = 0.0, *, layers: int = 2) -> Any:
    """A BERT of Hugging Face with the same random weights at every call, without a pooler."""
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        model = BertModel(config, add_pooling_layer=False)
        # Unit norms and zero biases would hide a wrong use of them.
        for parameter in model.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.05)
    return model


def toy_model(
    tasks: Sequence[str] = TASKS,
    dropout: float = 0.0,
    *,
    encoder: Encoder | None = None,
    pooling: Literal["first_dense", "first", "mean"] = "first_dense",
) -> MultitaskModel:
    """The tasks' heads on ``encoder``, by default a packed tiny BERT."""
    shared = wrap_model(toy_bert(dropout), "packed") if encoder is None else encoder
    heads: dict[str, nn.Module] = {}
    for task in tasks:
        head = SequenceHead(toy_spec(task), shared.width, SequenceHeadSettings(pooling=pooling, dropout=dropout))
        head.initialise(1, None)
        heads[task] = head
    return MultitaskModel(shared, heads)


@dataclass(frozen=True)
class Toy:
    """A training put together by hand."""

    model: MultitaskModel
    optimizer: Optimizer
    updater: Updater
    planner: DrawnPlanner
    preparation: Preparation

    def update(self, step: int) -> PreparedUpdate:
        """Update ``step``, not run."""
        return self.preparation.prepare(self.planner, step)

    def run(self, start: int, stop: int) -> list[UpdateResult]:
        """Run updates ``start`` to ``stop - 1``."""
        return [self.updater.run(self.update(step)) for step in range(start, stop)]

    def weights(self) -> dict[str, Tensor]:
        """Copies of all weights by name."""
        return {name: parameter.detach().clone() for name, parameter in named_parameters(self.model).items()}

    def gradients(self) -> dict[str, Tensor]:
        """Copies of the gradients that the last update left, clipped if it clipped them."""
        found = {name: parameter.grad for name, parameter in named_parameters(self.model).items()}
        return {name: gradient.clone() for name, gradient in found.items() if gradient is not None}


def toy_training(
    *,
    tasks: Sequence[str] = TASKS,
    model: MultitaskModel | None = None,
    dropout: float = 0.0,
    weighting: Weighting | None = None,
    combine: Literal["share", "equal"] = "share",
    sampler: Sampler | None = None,
    total: int = 50,
    rows: int = 12,
    groups: int | None = None,
    micro_batches: int = 1,
    micro_batch_tokens: int = 16384,
    precision: Literal["fp32", "bf16"] = "fp32",
    optimizer: Mapping[str, Any] | None = None,
    ranks: Ranks = ALONE,
    device: torch.device = _CPU,
) -> Toy:
    """A training of ``total`` updates of ``rows`` rows, by default of all three tasks mixed and equally likely."""
    made = (toy_model(tasks, dropout) if model is None else model).to(device)
    stores = {task: toy_store(task) for task in tasks}
    streams = [TaskStream(task, 1, np.arange(store.rows), store.lengths()) for task, store in stores.items()]
    chosen = FixedSampler(np.ones(len(tasks))) if sampler is None else sampler
    weights = ConstantWeights([1.0] * len(tasks)) if weighting is None else weighting
    settings = OptimizerSettings.model_validate({"learning_rate": 1e-3, **(optimizer or {})})
    steps = Optimizer(made, settings, {task: SequenceHeadSettings() for task in tasks}, total, weights.parameters())
    preparation = Preparation(
        BatchSource(stores), "rows", micro_batches, micro_batch_tokens, pin=device.type == "cuda", ranks=ranks
    )
    updater = Updater(made, steps, weights, preparation, combine=combine, precision=precision, device=device, seed=1)
    return Toy(
        made,
        steps,
        updater,
        DrawnPlanner(1, total, streams, chosen, UpdateSize(rows, None, groups)),
        preparation,
    )


def relative_difference(first: Tensor, second: Tensor) -> float:
    """Largest difference in units of the second's largest value."""
    return float((first - second).abs().max() / second.abs().max())


def with_counts(toy: Toy, *present: str) -> PreparedUpdate:
    """The first update that holds exactly the tasks in ``present``."""
    wanted = [task in present for task in toy.model.tasks]
    for step in range(toy.planner.total):
        update = toy.update(step)
        if (update.counts > 0).tolist() == wanted:
            return update
    raise AssertionError(f"no update of {present} alone")
