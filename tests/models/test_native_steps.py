"""Each step of the native pass against its plain reference: values and gradients, with dropout, in fp32 and bf16."""

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtl.data.blocks import sequence_blocks
from mtl.models import ops
from mtl.models.dropout import drop, drop_attention
from mtl.models.masks import (
    KeepMask,
    attention_place,
    features_place,
    keep_attention,
    keep_features,
    keep_masks,
    masked,
)
from mtl.models.native.attention import Grouping, _forward, attend, attend_from_first, grouping
from mtl.models.native.residual import residual_norm

CPU = torch.device("cpu")
HEADS, WIDTH, FILLER = 2, 16, 3
LENGTHS = np.array([5, 17, 1, 20, 16, 3])
TOKENS = int(LENGTHS.sum())


def values(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def assert_same(
    ours: Callable[[], Tensor], reference: Callable[[], Tensor], inputs: Sequence[Tensor], tolerance: float
) -> None:
    """Values and the gradients of all inputs agree, in units of the reference's largest value."""
    found, expected = ours(), reference()
    assert found.shape == expected.shape
    readout = torch.cos(torch.arange(expected.numel(), dtype=torch.float32)).view(expected.shape)
    pairs = [(found, expected)]
    gradients = [torch.autograd.grad((out.float() * readout).sum(), inputs) for out in (found, expected)]
    pairs += list(zip(*gradients, strict=True))
    for one, other in pairs:
        assert one.dtype == other.dtype
        scale = max(float(other.detach().float().abs().max()), 1e-6)
        assert float((one.detach().float() - other.detach().float()).abs().max()) <= tolerance * scale


# Gradients of the three parts are rounded once, after they are added up, instead of one by one.
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)])
def test_side_by_side_equals_the_layers_one_by_one(dtype: torch.dtype, tolerance: float) -> None:
    inputs = values(7, WIDTH, dtype=dtype)
    layers = [nn.Linear(WIDTH, width) for width in (8, 8, 8)]
    parameters = [parameter for layer in layers for parameter in (layer.weight, layer.bias)]
    assert_same(
        lambda: ops.linear_side_by_side(inputs, layers),
        lambda: torch.cat([F.linear(inputs, layer.weight.to(dtype), layer.bias.to(dtype)) for layer in layers], dim=1),
        [inputs, *parameters],
        tolerance,
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_a_rounded_linear_layer_equals_the_plain_one_on_rounded_weights(dtype: torch.dtype, tolerance: float) -> None:
    inputs, weight, bias = values(7, WIDTH, dtype=dtype), values(8, WIDTH, seed=1), values(8, seed=2)
    assert_same(
        lambda: ops.linear(inputs, weight, bias),
        lambda: F.linear(inputs, weight.to(dtype), bias.to(dtype)),
        [inputs, weight, bias],
        tolerance,
    )


@pytest.mark.parametrize("widened", [False, True], ids=["as on a CPU", "as on a GPU"])
@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_residual_norm_equals_dropout_addition_and_norm(
    dtype: torch.dtype, tolerance: float, dropped: bool, widened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtl.models.native.residual._widens", lambda device: widened)
    inputs, residual = values(9, WIDTH, dtype=dtype), values(9, WIDTH, seed=1, dtype=dtype)
    norm = nn.LayerNorm(WIDTH, eps=1e-12)
    norm.weight.data, norm.bias.data = torch.rand(WIDTH) + 0.5, torch.rand(WIDTH)
    keys = torch.arange(9, dtype=torch.int32) * 7919

    def reference() -> Tensor:
        kept = drop(inputs, 0.3, keys, 5) if dropped else inputs
        return F.layer_norm((residual + kept).float(), (WIDTH,), norm.weight, norm.bias, norm.eps).to(dtype)

    keep = keep_features(keys, WIDTH, 0.3, 5) if dropped else None
    parameters = [inputs, residual, norm.weight, norm.bias]
    assert_same(lambda: residual_norm(inputs, residual, norm, keep), reference, parameters, tolerance)


def attention_reference(projected: Tensor, keys: Tensor | None, rate: float, site_key: int) -> Tensor:
    """Every sequence by itself, in plain operations."""
    outputs = []
    for place, rows in enumerate(projected.split(LENGTHS.tolist())):
        query, key, value = (part.view(len(rows), HEADS, -1).transpose(0, 1) for part in rows.chunk(3, dim=1))
        scores = query.float() @ key.float().transpose(1, 2) * (WIDTH // HEADS) ** -0.5
        probabilities = torch.softmax(scores, dim=-1).to(rows.dtype)
        if keys is not None:
            row_keys = keys.split(LENGTHS.tolist())[place][None]
            probabilities = drop_attention(probabilities[None], rate, row_keys, site_key)[0]
        outputs.append((probabilities @ value).transpose(0, 1).reshape(len(rows), WIDTH))
    return torch.cat(outputs)


def keep_blocks(groups: Grouping, keys: Tensor | None, rate: float, *, first: bool) -> list[KeepMask | None]:
    """The masks of each block, for all queries or those of first tokens."""
    indices = [block.index[:, :1] if first else block.index for block in groups.blocks]
    lengths = [block.index.shape[1] for block in groups.blocks]
    if keys is None:
        return [None] * len(lengths)
    return [keep_attention(keys[index], HEADS, length, rate, 5) for index, length in zip(indices, lengths, strict=True)]


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("longest_in_fp32", [0, 128])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_grouped_attention_equals_attention_of_each_sequence(
    dtype: torch.dtype, tolerance: float, longest_in_fp32: int, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtl.models.native.attention._LONGEST_IN_FP32", longest_in_fp32)
    projected = values(TOKENS, 3 * WIDTH, dtype=dtype)
    keys = torch.arange(TOKENS, dtype=torch.int32) * 7919 if rate else None
    starts = torch.from_numpy(np.concatenate([[0], np.cumsum(LENGTHS)[:-1]]))
    groups = grouping(sequence_blocks(LENGTHS), starts, TOKENS + FILLER, HEADS, dtype)
    assert len(groups.blocks) > 1
    assert any(past_end is not None for past_end in groups.past_ends)
    # Whatever is in the filler, it reaches nothing, and nothing reaches its gradient.
    rows = F.pad(projected, (0, 0, 0, FILLER), value=7.0)
    keeps, keeps_of_firsts = (keep_blocks(groups, keys, rate, first=first) for first in (False, True))
    assert_same(
        lambda: attend(rows, groups, HEADS, keeps)[:TOKENS],
        lambda: attention_reference(projected, keys, rate, 5),
        [projected],
        tolerance,
    )
    query, others = projected[:, :WIDTH], rows[:, WIDTH:]
    assert_same(
        lambda: attend_from_first(query[groups.firsts], others, groups, HEADS, keeps_of_firsts)[groups.unsorted],
        lambda: attention_reference(projected, keys, rate, 5)[starts],
        [projected],
        tolerance,
    )


def test_filler_gets_zeros_and_a_gradient_of_zero() -> None:
    rows = values(TOKENS + FILLER, 3 * WIDTH)
    starts = torch.from_numpy(np.concatenate([[0], np.cumsum(LENGTHS)[:-1]]))
    # Once with places past a sequence's end, once without any.
    for lengths in (LENGTHS, np.array([TOKENS - 32, 32])):
        assert int(lengths.sum()) == TOKENS
        groups = grouping(sequence_blocks(lengths), starts[: len(lengths)], TOKENS + FILLER, HEADS, torch.float32)
        attended = attend(rows, groups, HEADS, [None] * len(groups.blocks))
        assert not attended[TOKENS:].any()
        [gradient] = torch.autograd.grad(attended[:TOKENS].square().sum(), [rows])
        assert not gradient[TOKENS:].any()
        assert gradient[:TOKENS].all(dim=1).any()


@pytest.mark.parametrize(
    ("context", "kept"), [(torch.inference_mode, False), (torch.no_grad, False), (nullcontext, True)]
)
def test_parts_of_a_block_are_kept_for_a_backward_pass_alone(
    context: Callable[[], AbstractContextManager[None]], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[weakref.ref[Tensor]] = []
    living: list[int] = []

    def recorded(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        found = _forward(*arguments)
        living.append(sum(part() is not None for part in parts))
        parts.append(weakref.ref(found[1]))
        return found

    monkeypatch.setattr("mtl.models.native.attention._forward", recorded)
    lengths = np.array([16, 32, 48, 64])
    starts = torch.from_numpy(np.cumsum(lengths) - lengths)
    rows = values(lengths.sum() + FILLER, 3 * WIDTH)
    with context():
        groups = grouping(sequence_blocks(lengths), starts, len(rows), HEADS, torch.float32)
        attend(rows * 1.0, groups, HEADS, [None] * len(lengths))
    assert living == ([0, 1, 2, 3] if kept else [0, 1, 1, 1])


def test_masks_made_together_equal_masks_made_one_by_one() -> None:
    rows = torch.arange(600, dtype=torch.int32) * 7919
    places = [
        features_place(rows, 2 * 2**10, 0.1),
        attention_place(rows.view(20, 30), 3, 30, 0.5),
        features_place(rows[:1], 7, 0.0),
    ]
    together = keep_masks(places)
    for place, keep in zip(places, together, strict=True):
        [alone] = keep_masks([place])
        assert torch.equal(keep.bits, alone.bits)
        assert keep.scale == alone.scale
    assert [tuple(keep.bits.shape) for keep in together] == [(600, 2048), (20, 3, 30, 30), (1, 7)]


@pytest.mark.parametrize(("device", "stretches"), [("cpu", 3), ("meta", 1)])
def test_only_a_cpu_hashes_in_stretches(device: str, stretches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr("mtl.models.masks._scramble_", lambda words: sizes.append(words.numel()))
    keep_masks([features_place(torch.zeros(300, dtype=torch.int32, device=device), 2**11, 0.1)])
    assert sum(sizes) == 300 * 2**10
    assert len(sizes) == stretches


@pytest.mark.parametrize("rate", [0.0, 2**-16, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks_clear_all_bits_or_none(dtype: torch.dtype, rate: float) -> None:
    keep = keep_features(torch.arange(50, dtype=torch.int32), 33, rate, 1)
    assert set(keep.bits.unique().tolist()) <= {-1, 0}
    inputs = values(50, 33, dtype=dtype).detach()
    assert torch.equal(masked(inputs, keep), torch.where(keep.bits == -1, inputs, torch.zeros_like(inputs)))
    assert keep.scale == pytest.approx(1.0 / (1.0 - round(rate * 2**16) / 2**16))


def test_attention_masks_differ_between_heads_queries_and_keys() -> None:
    keep: KeepMask = keep_attention(torch.arange(6, dtype=torch.int32).view(2, 3), 4, 64, 0.5, 1)
    assert keep.bits.shape == (2, 4, 3, 64)
    rows = keep.bits.reshape(-1, 64)
    assert len(rows.unique(dim=0)) == len(rows)
