"""Scoring a task on a whole split: one pass of its own, every example once, in the split's order.

N examples, C outputs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from mtl import metrics
from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.store import TokenStore
from mtl.models.multitask import MultitaskModel
from mtl.runtime.precision import Precision, forward_context
from mtl.runtime.ranks import ALONE, Ranks
from mtl.sampling.samplers import IntArray
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class SplitPredictions:
    """What a model says about ``rows`` (N,) of a split, in that order: fp32 ``outputs`` (N, C), and labels if known.

    Rows of a store that holds a part are named as its ``row_ids`` name them. ``predictions`` (N,) are class indices or
    scores.
    """

    rows: IntArray
    outputs: npt.NDArray[np.float32]
    predictions: npt.NDArray[np.int64] | npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64] | npt.NDArray[np.float32] | None


@dataclass(frozen=True)
class Evaluator:
    """Runs a model over splits in fixed batches of at most ``tokens_per_batch`` tokens.

    Batches are a function of the split's lengths and the limit alone, and are dealt whole to the ranks: every example
    is scored once, on one rank, and all ranks get all outputs. ``check`` is called between batches, equally often on
    every rank, and may raise to end the evaluation.
    """

    tokens_per_batch: int
    precision: Precision
    device: torch.device
    check: Callable[[], None] = lambda: None
    ranks: Ranks = ALONE

    def predict(
        self, model: MultitaskModel, spec: TaskSpec, store: TokenStore, rows: IntArray | None = None
    ) -> SplitPredictions:
        """Outputs for ``rows`` of the store (default: all), in the order of ``rows``. Leaves the model's mode be."""
        chosen = np.arange(store.rows, dtype=np.int64) if rows is None else rows
        named = chosen if store.row_ids is None else store.row_ids[chosen]
        source = BatchSource({spec.name: store})
        outputs = np.zeros((chosen.size, spec.outputs), dtype=np.float32)
        batches = list(evaluation_batches(store.lengths()[chosen], self.tokens_per_batch))
        found: list[tuple[IntArray, torch.Tensor]] = []
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                for first in range(0, len(batches), self.ranks.size):
                    self.check()
                    if first + self.ranks.rank < len(batches):
                        places = batches[first + self.ranks.rank]
                        batch = source.evaluation_batch(spec.name, chosen[places])
                        with forward_context(self.precision, self.device):
                            logits = model(self._on_device(batch))[spec.name]
                        found.append((places, logits.float()))
            # Only now: read at once, each would make the host wait, and the device for the next batch after it.
            for places, values in found:
                outputs[places] = values.cpu().numpy()
        finally:
            model.train(training)
        # Exact: all ranks but one hold zeros at each place.
        self.ranks.add(torch.from_numpy(outputs))
        predictions = outputs[:, 0] if spec.kind == "regression" else outputs.argmax(axis=1).astype(np.int64)
        labels = np.asarray(store.labels[chosen]) if store.labelled else None
        return SplitPredictions(named, outputs, predictions, labels)

    def _on_device(self, batch: PackedBatch) -> PackedBatch:
        return (batch.pin() if self.device.type == "cuda" else batch).to(self.device)


def score_predictions(spec: TaskSpec, predicted: SplitPredictions) -> metrics.Scores:
    """The task's metrics; the split must be labelled."""
    assert predicted.labels is not None
    return metrics.score(spec, predicted.predictions, predicted.labels)


def evaluation_batches(lengths: IntArray, tokens_per_batch: int) -> Iterator[IntArray]:
    """Places of the examples of each batch, similar lengths together; each example once.

    A batch holds as many tokens as the limit allows, and at least one example.
    """
    order = np.argsort(lengths, kind="stable")
    start, tokens = 0, 0
    for end, place in enumerate(order):
        if end > start and tokens + lengths[place] > tokens_per_batch:
            yield order[start:end]
            start, tokens = end, 0
        tokens += int(lengths[place])
    if start < order.size:
        yield order[start:]
