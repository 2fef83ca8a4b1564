"""Packed, padded and plain transformers give the same hidden states, outputs and gradients."""

import pytest
import torch
from tiny_models import (
    FAMILIES,
    MAX_POSITIONS,
    NATIVE,
    PACKABLE,
    UNPADDED,
    gradients,
    mixed_batch,
    mixed_model,
    plain_hidden,
    relative_difference,
    tiny_model,
)
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.models.dropout import DropoutKey
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.models.probe import random_batch
from mtl.runtime.precision import forward_context

KEY = DropoutKey(seed=1, step=3)
TOLERANCE = 1e-5


@pytest.fixture(params=["torch", "compiled"], autouse=True)
def kernels(request: pytest.FixtureRequest) -> None:
    """All of it holds with compiled kernels in the native pass as well."""
    if request.param == "compiled":
        request.getfixturevalue("compiled_library")


def total_loss(model: MultitaskModel, batch: PackedBatch) -> Tensor:
    """Every example's loss, added up."""
    losses = model.losses(model(batch, KEY), batch)
    return torch.stack([task_losses.sum() for task_losses in losses.values()]).sum()


def readout(hidden: Tensor) -> Tensor:
    """A scalar that depends on every hidden value in its own way, so that no error can cancel."""
    weights = torch.cos(torch.arange(hidden.numel(), dtype=torch.float32)).view(hidden.shape)
    return (hidden.float() * weights).sum()


def assert_close(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    """Every gradient agrees; one that is rounding noise around zero is measured by the largest of all."""
    assert first.keys() == second.keys()
    largest = max(float(gradient.abs().max()) for gradient in second.values())
    for name, gradient in second.items():
        unit = max(float(gradient.abs().max()), 1e-2 * largest)
        assert float((first[name] - gradient).abs().max()) < TOLERANCE * unit, name


def test_packed_batches_are_longer_than_the_position_table() -> None:
    assert mixed_batch().tokens > 2 * MAX_POSITIONS


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize(("family", "batching"), UNPADDED)
def test_packed_and_native_equal_padded_with_dropout(family: str, batching: str, first_only: bool) -> None:
    batch = mixed_batch()
    packed = mixed_model(family, batching, first_only=first_only)
    padded = mixed_model(family, "padded", first_only=first_only)
    assert relative_difference(packed.encoder(batch, KEY), padded.encoder(batch, KEY)) < TOLERANCE
    for task, outputs in padded(batch, KEY).items():
        assert relative_difference(packed(batch, KEY)[task], outputs) < TOLERANCE
    assert_close(gradients(packed, total_loss(packed, batch)), gradients(padded, total_loss(padded, batch)))


@pytest.mark.parametrize(("family", "batching"), UNPADDED)
def test_every_parameter_is_reached(family: str, batching: str) -> None:
    """The equalities above would hold for a graph that is cut; this one is not."""
    model = mixed_model(family, batching)
    found = gradients(model, total_loss(model, mixed_batch()))
    unused = [name for name, gradient in found.items() if not gradient.abs().max() > 0]
    # Nothing reads the token types of a model without them; key biases cancel in the softmax up to rounding.
    assert not [name for name in unused if "token_type" not in name and not name.endswith("key.bias")]


@pytest.mark.parametrize(
    ("family", "attention"),
    # DeBERTa has one attention only.
    [*((family, "sdpa") for family in PACKABLE), *((family, "eager") for family in FAMILIES)],
)
def test_our_encoder_equals_the_plain_model(family: str, attention: str) -> None:
    batch = mixed_batch()
    plain = tiny_model(family, 0.0).train()
    plain.set_attn_implementation(attention)
    ours = wrap_model(tiny_model(family, 0.0), "padded" if family == "deberta" else "packed").train()
    expected = torch.cat(plain_hidden(plain, batch, types=family in ("bert", "electra", "albert")))
    hidden = ours(batch, KEY)
    assert relative_difference(hidden, expected) < TOLERANCE
    assert_close(gradients(ours.model, readout(hidden)), gradients(plain, readout(expected)))


@pytest.mark.parametrize(("family", "batching"), UNPADDED)
def test_without_a_key_evaluation_equals_the_plain_model_in_evaluation(family: str, batching: str) -> None:
    batch = random_batch((3, 20, 11), 60)
    plain = tiny_model(family).eval()
    expected = torch.cat(plain_hidden(plain, batch, types=False))
    assert relative_difference(wrap_model(tiny_model(family), batching).eval()(batch), expected) < TOLERANCE


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize(("family", "batching"), UNPADDED)
def test_gradients_point_the_same_way_as_padded_ones_in_bf16(family: str, batching: str, first_only: bool) -> None:
    batch = mixed_batch()
    found = []
    for way in (batching, "padded"):
        model = mixed_model(family, way, first_only=first_only)
        with forward_context("bf16", torch.device("cpu")):
            loss = total_loss(model, batch)
        assert loss.dtype == torch.float32
        found.append(torch.cat([gradient.flatten() for gradient in gradients(model, loss).values()]))
    assert float(torch.cosine_similarity(found[0], found[1], dim=0)) > 0.999


@pytest.mark.parametrize("family", NATIVE)
def test_hidden_states_that_nobody_reads_are_nan_and_all_others_the_same(family: str) -> None:
    batch = mixed_batch()
    encoder = mixed_model(family, "native").encoder
    whole, firsts = encoder(batch, KEY), encoder(batch, KEY, first_only=True)
    starts = batch.sequence_offsets[:-1]
    assert relative_difference(firsts[starts], whole[starts]) < TOLERANCE
    assert int(torch.isnan(firsts).all(dim=1).sum()) == batch.tokens - len(starts)


def test_another_key_drops_other_elements() -> None:
    model, batch = mixed_model("bert", "packed"), mixed_batch()
    hidden = model.encoder(batch, KEY)
    assert torch.equal(hidden, model.encoder(batch, KEY))
    for other in (DropoutKey(1, 4), DropoutKey(2, 3)):
        assert relative_difference(model.encoder(batch, other), hidden) > 1e-2
