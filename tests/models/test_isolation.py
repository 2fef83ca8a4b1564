"""An example's outputs are its own: neighbours, splits and order change nothing, and no gradient crosses over."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_models import (
    FAMILIES,
    NATIVE,
    PACKABLE,
    WINDOW,
    make_store,
    mixed_batch,
    mixed_model,
    mixed_source,
    relative_difference,
    tiny_model,
    whole_plan,
)
from torch import Tensor, nn
from transformers import ModernBertConfig, ModernBertModel

from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.plan import split_plan
from mtl.models.dropout import DropoutKey
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.models.native.encoder import NativeEncoder

KEY = DropoutKey(seed=4, step=3)


def batching_of(family: str) -> str:
    return "native" if family in NATIVE else "packed" if family in PACKABLE else "padded"


def token_range(batch: PackedBatch, example: int) -> slice:
    """The example's tokens in the batch."""
    first, last = batch.example_offsets[example : example + 2]
    return slice(int(batch.sequence_offsets[first]), int(batch.sequence_offsets[last]))


def by_example(model: MultitaskModel, batch: PackedBatch, key: DropoutKey | None) -> dict[tuple[str, int], Tensor]:
    """The outputs of every example, by task and row."""
    return {
        (task, int(row)): output
        for task, outputs in model(batch, key).items()
        for row, output in zip(batch.example_ids[batch.layout.slices[task]], outputs, strict=True)
    }


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("family", FAMILIES)
def test_other_tokens_in_the_neighbours_change_no_bit(family: str, key: DropoutKey | None) -> None:
    model = mixed_model(family, batching_of(family)).train(key is not None)
    batch = mixed_batch()
    hidden, outputs = model.encoder(batch, key), model(batch, key)
    for example in range(batch.examples):
        own = token_range(batch, example)
        tokens, types = batch.token_ids.flip(0).roll(7), 1 - batch.type_ids
        tokens[own], types[own] = batch.token_ids[own], batch.type_ids[own]
        disturbed = replace(batch, token_ids=tokens, type_ids=types)
        hidden_again, outputs_again = model.encoder(disturbed, key), model(disturbed, key)
        assert torch.equal(hidden_again[own], hidden[own])
        assert not torch.equal(hidden_again, hidden)
        task = batch.tasks[int(batch.example_task[example])]
        place = example - batch.layout.slices[task].start
        assert torch.equal(outputs_again[task][place], outputs[task][place])


@pytest.mark.parametrize("family", FAMILIES)
def test_no_gradient_reaches_a_neighbours_embeddings(family: str) -> None:
    model, batch = mixed_model(family, batching_of(family)), mixed_batch()
    embedded: list[Tensor] = []
    layer = model.encoder.model.get_input_embeddings()
    if isinstance(model.encoder, NativeEncoder):
        # The native pass reads the tables themselves; what they come to goes through the norm, token by token.
        layer = model.encoder.model.embeddings.LayerNorm
    layer.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    losses = torch.cat(list(model.losses(model(batch, KEY), batch).values()))
    lengths = batch.layout.sequence_lengths.tolist()
    for example in range(batch.examples):
        (found,) = torch.autograd.grad(losses[example], embedded, retain_graph=True)
        found = found[None] if found.dim() == 2 else found
        rows = found[0] if found.shape[0] == 1 else torch.cat([found[i, :n] for i, n in enumerate(lengths)])
        own = token_range(batch, example)
        assert rows[own].abs().sum() > 0
        assert torch.count_nonzero(rows[: own.start]) == torch.count_nonzero(rows[own.stop :]) == 0


@pytest.mark.parametrize("parts", [2, 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_micro_batches_equal_the_whole_update_with_dropout(family: str, parts: int) -> None:
    model, source = mixed_model(family, batching_of(family)), mixed_source()
    plan = whole_plan(source)
    whole = by_example(model, source.batch(plan, np.arange(plan.rows.size)), KEY)
    split: dict[tuple[str, int], Tensor] = {}
    for slots in split_plan(plan, 1, parts)[0]:
        split |= by_example(model, source.batch(plan, slots), KEY)
    assert whole.keys() == split.keys()
    for example, output in whole.items():
        torch.testing.assert_close(split[example], output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "deberta"])
def test_the_order_inside_a_batch_does_not_matter(family: str) -> None:
    model, source = mixed_model(family, batching_of(family)), mixed_source()
    plan = whole_plan(source)
    slots = np.arange(plan.rows.size)
    forwards, backwards = (by_example(model, source.batch(plan, order), KEY) for order in (slots, slots[::-1]))
    for example, output in forwards.items():
        torch.testing.assert_close(backwards[example], output, rtol=1e-5, atol=1e-6)


def one_sliding_layer() -> ModernBertModel:
    config = ModernBertConfig.from_dict(
        tiny_model("modernbert").config.to_dict() | {"num_hidden_layers": 1, "layer_types": ["sliding_attention"]}
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        return ModernBertModel(config).eval()


def dependence(hidden: Tensor, embedded: Tensor) -> Tensor:
    """(L, L): whether hidden state i (L, D) depends on the embedding of token j (L, D)."""
    weights = torch.linspace(0.5, 1.5, hidden.shape[1])
    rows = [torch.autograd.grad((row * weights).sum(), embedded, retain_graph=True)[0] for row in hidden]
    return torch.stack(rows).abs().sum(-1) > 0


def test_a_sliding_layer_sees_its_window_and_nothing_else() -> None:
    lengths = [20, 31, WINDOW, 27]
    source = BatchSource({"toy/window": make_store([[length] for length in lengths], 8)})
    batch = source.evaluation_batch("toy/window", np.arange(len(lengths)))
    plain = one_sliding_layer()
    encoder = wrap_model(one_sliding_layer(), "packed").eval()
    embedded: list[Tensor] = []
    encoder.model.get_input_embeddings().register_forward_hook(lambda module, inputs, output: embedded.append(output))
    hidden = encoder(batch)
    seen = dependence(hidden, embedded[0])[:, 0]
    places, owner = batch.position_ids, torch.repeat_interleave(torch.tensor(lengths))
    near = (places[:, None] - places[None, :]).abs() <= WINDOW
    assert torch.equal(seen, near & (owner[:, None] == owner[None, :]))
    # The reference has the same window, so ours is not one off.
    for begin, length in zip(batch.sequence_offsets.tolist(), lengths, strict=False):
        alone = batch.token_ids[None, begin : begin + length]
        expected = plain(input_ids=alone).last_hidden_state[0]
        assert relative_difference(hidden[begin : begin + length], expected) < 1e-5


class Disturbance(nn.Module):
    """Adds the mean over the row to every token: what a convolution or a global token would do to a packed row."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *arguments: Tensor, **named: Tensor) -> Tensor:
        embedded: Tensor = self.inner(*arguments, **named)
        return embedded + embedded.mean(dim=1, keepdim=True)


def test_these_tests_see_a_model_that_leaks() -> None:
    model, batch = mixed_model("bert", "packed"), mixed_batch()
    model.encoder.model.embeddings = Disturbance(model.encoder.model.embeddings)
    own = token_range(batch, 0)
    tokens = batch.token_ids.flip(0)
    tokens[own] = batch.token_ids[own]
    with torch.no_grad():
        first, second = model.encoder(batch, KEY), model.encoder(replace(batch, token_ids=tokens), KEY)
    assert not torch.equal(first[own], second[own])
