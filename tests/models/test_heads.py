"""Heads: values by hand, one loss an example, and weights that depend on seed and task alone."""

import math
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from tiny_models import TASKS, WIDTH, mixed_batch, mixed_model, tiny_model, toy_spec
from torch import Tensor

from mtl.config.encoder import SequenceHeadSettings
from mtl.data.batches import PackedBatch
from mtl.models.dropout import DropoutKey, drop, example_keys
from mtl.models.heads import SequenceHead, first_tokens, mean_tokens, sequence_slice, token_slice
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel

Pooling = Literal["first_dense", "first", "mean"]


def make_head(task: str, outputs: int, pooling: Pooling = "first", rate: float = 0.0, seed: int = 1) -> SequenceHead:
    head = SequenceHead(toy_spec(task, outputs), WIDTH, SequenceHeadSettings(pooling=pooling, dropout=rate))
    head.initialise(seed, None)
    return head


def hidden_for(batch: PackedBatch) -> Tensor:
    return torch.randn(batch.tokens, WIDTH, generator=torch.Generator().manual_seed(3))


def rows_by_hand(batch: PackedBatch, task: str) -> list[slice]:
    """Token ranges of the task's sequences, found by walking over the whole batch."""
    offsets, firsts = batch.sequence_offsets.tolist(), batch.example_offsets.tolist()
    chosen = batch.layout.slices[task]
    sequences = range(firsts[chosen.start], firsts[chosen.stop])
    return [slice(offsets[number], offsets[number + 1]) for number in sequences]


@pytest.mark.parametrize("task", TASKS)
def test_pooling_by_hand_for_unequal_lengths(task: str) -> None:
    batch = mixed_batch()
    hidden, rows = hidden_for(batch), rows_by_hand(batch, task)
    assert len({row.stop - row.start for row in rows}) > 1
    assert torch.equal(first_tokens(hidden, batch, task), torch.stack([hidden[row.start] for row in rows]))
    expected = torch.stack([hidden[row].mean(0) for row in rows])
    torch.testing.assert_close(mean_tokens(hidden, batch, task), expected, rtol=1e-6, atol=1e-6)
    assert token_slice(batch, task) == slice(rows[0].start, rows[-1].stop)
    sequences = sequence_slice(batch, task)
    assert sequences.stop - sequences.start == len(rows)


def test_mean_of_bf16_states_is_summed_in_fp32() -> None:
    batch = mixed_batch()
    hidden = torch.full((batch.tokens, WIDTH), 1.0).to(torch.bfloat16)
    hidden[::2] = 1.0078125
    for task in TASKS:
        expected = torch.stack([hidden[row].float().mean(0) for row in rows_by_hand(batch, task)]).to(torch.bfloat16)
        assert torch.equal(mean_tokens(hidden, batch, task), expected)


def test_first_dense_is_linear_tanh_linear() -> None:
    batch, task = mixed_batch(), TASKS[0]
    head, hidden = make_head(task, 2, "first_dense"), hidden_for(batch)
    assert head.dense is not None
    head.dense.bias.data.uniform_(-1, 1)
    head.output.bias.data.uniform_(-1, 1)
    rows = torch.stack([hidden[row.start] for row in rows_by_hand(batch, task)])
    inner = torch.tanh(rows @ head.dense.weight.T + head.dense.bias)
    expected = inner @ head.output.weight.T + head.output.bias
    torch.testing.assert_close(head(hidden, batch, None), expected)


def test_classification_loss_by_hand() -> None:
    outputs = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    losses = make_head(TASKS[0], 2).losses(outputs, torch.tensor([1, 1]))
    expected = [math.log(2), math.log(math.exp(2) + 1)]
    torch.testing.assert_close(losses, torch.tensor(expected))


def test_regression_losses_do_not_broadcast() -> None:
    """(B, 1) minus (B,) would be (B, B), its mean a plausible wrong number."""
    head = make_head(TASKS[2], 1)
    losses = head.losses(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1, 2, 3]))
    assert losses.tolist() == [0.0, 0.0, 0.0]
    losses = head.losses(torch.tensor([[1.0], [2.0]]), torch.tensor([1.5, 0.0]))
    assert losses.tolist() == [0.25, 4.0]
    assert head.losses(torch.ones(1, 1), torch.tensor([3.0])).tolist() == [4.0]


@pytest.mark.parametrize("outputs", [1, 3])
def test_losses_are_fp32_whatever_the_outputs_are(outputs: int) -> None:
    targets = torch.tensor([2, 0]) if outputs > 1 else torch.tensor([1.2345678, 0.0])
    logits = torch.randn(2, outputs).to(torch.bfloat16)
    head = make_head("toy/any", outputs)
    losses = head.losses(logits, targets)
    assert losses.dtype == torch.float32
    assert losses.shape == (2,)
    torch.testing.assert_close(losses, head.losses(logits.float(), targets), rtol=0, atol=0)


def test_losses_keep_every_example_finite_for_large_logits() -> None:
    losses = make_head(TASKS[0], 2).losses(torch.tensor([[1e4, -1e4]]), torch.tensor([1]))
    assert losses.tolist() == [2e4]


def test_initial_weights_depend_on_seed_and_task_alone() -> None:
    first = make_head(TASKS[0], 2, "first_dense")
    state = torch.get_rng_state()
    torch.manual_seed(123)
    for other in ("toy/another", "toy/third"):
        make_head(other, 5)
    again = make_head(TASKS[0], 2, "first_dense")
    torch.set_rng_state(state)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    for different in (make_head(TASKS[0], 2, "first_dense", seed=2), make_head("toy/another", 2, "first_dense")):
        assert not torch.equal(different.output.weight, first.output.weight)
    weights = torch.cat([first.output.weight.flatten(), first.dense.weight.flatten()])  # type: ignore[union-attr]
    assert 0.017 < float(weights.detach().std()) < 0.023
    assert float(first.output.bias.detach().abs().max()) == 0.0


def test_initialising_leaves_the_global_generator_alone() -> None:
    head, state = make_head(TASKS[0], 2), torch.get_rng_state()
    head.initialise(9, None)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_pooler_becomes_the_dense_layer_and_changes_nothing_else() -> None:
    pooler = {"weight": torch.randn(WIDTH, WIDTH), "bias": torch.randn(WIDTH)}
    head, plain = make_head(TASKS[0], 2, "first_dense"), make_head(TASKS[0], 2, "first_dense")
    head.initialise(1, pooler)
    assert head.dense is not None
    assert torch.equal(head.dense.weight, pooler["weight"])
    assert torch.equal(head.dense.bias, pooler["bias"])
    assert torch.equal(head.output.weight, plain.output.weight)
    head.dense.weight.data.zero_()
    assert float(pooler["weight"].abs().sum()) > 0
    without = make_head(TASKS[0], 2, "mean")
    without.initialise(1, pooler)
    assert without.dense is None


def test_dropout_is_keyed_on_the_slot_and_off_in_evaluation() -> None:
    batch, task, key = mixed_batch(), TASKS[1], DropoutKey(1, 2)
    head, hidden = make_head(task, 3, "first", rate=0.5), hidden_for(batch)
    plain = head(hidden, batch, None)
    dropped = head(hidden, batch, key)
    assert not torch.equal(dropped, plain)
    assert torch.equal(dropped, head(hidden, batch, key))
    assert not torch.equal(dropped, head(hidden, batch, DropoutKey(1, 3)))
    assert torch.equal(head.eval()(hidden, batch, key), plain)
    mask = drop(torch.ones(batch.examples, WIDTH), 0.5, example_keys(batch, key), 0)
    assert len({tuple(row.tolist()) for row in mask}) == batch.examples


def test_heads_are_known_by_name_dots_and_all() -> None:
    names = ("toy/v1.1", "toy/v1", "toy.1/v", "toy/v1_1")
    heads = {name: make_head(name, 2) for name in names}
    model = MultitaskModel(wrap_model(tiny_model("bert"), "packed"), heads)
    assert model.tasks == names
    for name in names:
        assert model.head(name) is heads[name]
        assert model.head_module(name) is heads[name]
    assert set(map(id, model.parameters())) >= {id(value) for head in heads.values() for value in head.parameters()}
    model.load_state_dict(model.state_dict())


def test_the_model_gives_one_loss_an_example_and_only_present_tasks() -> None:
    model, batch = mixed_model("bert", "packed"), mixed_batch()
    outputs = model(batch, DropoutKey(0, 0))
    assert {task: tuple(value.shape) for task, value in outputs.items()} == {
        TASKS[0]: (5, 2),
        TASKS[1]: (3, 3),
        TASKS[2]: (2, 1),
    }
    losses = model.losses(outputs, batch)
    assert {task: tuple(value.shape) for task, value in losses.items()} == {
        TASKS[0]: (5,),
        TASKS[1]: (3,),
        TASKS[2]: (2,),
    }
    expected = F.cross_entropy(outputs[TASKS[1]], batch.targets[TASKS[1]], reduction="none")
    torch.testing.assert_close(losses[TASKS[1]], expected)
