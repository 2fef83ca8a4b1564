"""The batch carries what multiple choice and span tasks need: several sequences an example, and token ranges.

The heads are defined here: they show that a head of another kind needs no change in batch, encoder or model.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny_models import PACKABLE, WIDTH, gradients, make_store, relative_difference, tiny_model
from torch import Tensor, nn

from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.plan import UpdatePlan
from mtl.models.dropout import DropoutKey
from mtl.models.heads import first_tokens
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel

CHOICE, SPANS = "toy/choice", "toy/spans"
CHOICES = [[4, 9, 3], [12, 2], [7, 17, 5, 6], [20, 8, 8]]
TEXTS = [[10], [19, 4], [6], [30]]
RANGES = [[[0, 2], [5, 9]], [[1, 4], [19, 23]], [[0, 1], [2, 6]], [[29, 30], [3, 20]]]


class ChoiceHead(nn.Module):
    """One score a sequence; an example's class is the number of its best sequence. Outputs (B_t, most choices)."""

    def __init__(self, task: str) -> None:
        super().__init__()
        self.task = task
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, hidden_TD: Tensor, batch: PackedBatch, key: DropoutKey | None) -> Tensor:
        scores = self.score(first_tokens(hidden_TD, batch, self.task)).squeeze(-1)
        counts = batch.layout.sequences_per_example[batch.layout.slices[self.task]]
        parts = list(scores.split(counts.tolist()))
        return nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=float("-inf"))

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs.float(), targets, reduction="none")


class SpanHead(nn.Module):
    """The means over two token ranges of an example, side by side, to two classes. Outputs (B_t, 2)."""

    def __init__(self, task: str) -> None:
        super().__init__()
        self.task = task
        self.output = nn.Linear(2 * WIDTH, 2)

    def forward(self, hidden_TD: Tensor, batch: PackedBatch, key: DropoutKey | None) -> Tensor:
        chosen = batch.layout.slices[self.task]
        begins = batch.sequence_offsets[batch.example_offsets[chosen]]
        rows = []
        for begin, ranges in zip(begins.tolist(), batch.spans[self.task].tolist(), strict=True):
            rows.append(torch.cat([hidden_TD[begin + first : begin + last].mean(0) for first, last in ranges]))
        outputs: Tensor = self.output(torch.stack(rows))
        return outputs

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs.float(), targets, reduction="none")


def toy_source() -> BatchSource:
    return BatchSource(
        {CHOICE: make_store(CHOICES, 1, np.array([2, 0, 3, 1])), SPANS: make_store(TEXTS, 2, np.array([0, 1, 1, 0]))}
    )


def toy_batch(slots: list[int] | None = None) -> PackedBatch:
    rows = np.array([2, 0, 1, 3, 3, 1, 2, 0])
    tasks = np.array([0, 1, 0, 1, 0, 1, 1, 0])
    plan = UpdatePlan(0, tasks, rows, np.ones(8, dtype=np.int64))
    batch = toy_source().batch(plan, np.array(range(8) if slots is None else slots))
    ranges = torch.tensor(RANGES)[batch.example_ids[batch.layout.slices[SPANS]]]
    return replace(batch, spans={SPANS: ranges})


def toy_model(family: str, batching: str) -> MultitaskModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        heads = {CHOICE: ChoiceHead(CHOICE), SPANS: SpanHead(SPANS)}
    return MultitaskModel(wrap_model(tiny_model(family), batching), heads).train()


def mean_loss(model: MultitaskModel, batch: PackedBatch, step: int) -> Tensor:
    losses = model.losses(model(batch, DropoutKey(3, step)), batch)
    return torch.cat(list(losses.values())).mean()


def test_the_batch_holds_every_sequence_of_an_example_in_order() -> None:
    batch, source = toy_batch(), toy_source()
    begins, firsts = batch.sequence_offsets.tolist(), batch.example_offsets.tolist()
    for task, examples in ((CHOICE, CHOICES), (SPANS, TEXTS)):
        store, chosen = source.stores[task], batch.layout.slices[task]
        for example in range(chosen.start, chosen.stop):
            row = int(batch.example_ids[example])
            lengths = np.diff(begins[firsts[example] : firsts[example + 1] + 1]).tolist()
            assert lengths == examples[row]
            begin = int(store.sequence_offsets[store.example_offsets[row]])
            tokens = batch.token_ids[begins[firsts[example]] : begins[firsts[example + 1]]]
            assert tokens.tolist() == store.tokens[begin : begin + sum(lengths)].tolist()
    assert batch.position_ids.tolist() == [place for size in batch.layout.sequence_lengths for place in range(size)]


@pytest.mark.parametrize("family", PACKABLE)
def test_packed_equals_padded(family: str) -> None:
    batch = toy_batch()
    packed, padded = toy_model(family, "packed"), toy_model(family, "padded")
    expected = padded(batch, DropoutKey(3, 0))
    for task, outputs in packed(batch, DropoutKey(3, 0)).items():
        torch.testing.assert_close(outputs, expected[task], rtol=1e-5, atol=1e-5)
    ours = gradients(packed, mean_loss(packed, batch, 0))
    theirs = gradients(padded, mean_loss(padded, batch, 0))
    flat = [torch.cat([gradient.flatten() for gradient in found.values()]) for found in (ours, theirs)]
    assert relative_difference(flat[0], flat[1]) < 1e-5


@pytest.mark.parametrize("batching", ["packed", "padded"])
def test_micro_batches_give_each_example_its_outputs(batching: str) -> None:
    model, key = toy_model("bert", batching), DropoutKey(3, 0)
    whole, batch = model(toy_batch(), key), toy_batch()
    for slots in ([0, 3], [1, 2, 5], [4, 6, 7]):
        part = toy_batch(slots)
        for task, outputs in model(part, key).items():
            for row, output in zip(part.example_ids[part.layout.slices[task]], outputs, strict=True):
                place = (batch.example_ids[batch.layout.slices[task]] == row).nonzero().item()
                expected = whole[task][place][: output.numel()]
                torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batching", ["packed", "padded"])
def test_training_lowers_the_loss(batching: str) -> None:
    model, batch = toy_model("bert", batching), toy_batch()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    first = float(mean_loss(model, batch, 0).detach())
    for step in range(60):
        optimiser.zero_grad()
        mean_loss(model, batch, step).backward()
        optimiser.step()
    for task, losses in model.losses(model.eval()(batch, None), batch).items():
        assert float(losses.detach().max()) < 0.5 * first, task
