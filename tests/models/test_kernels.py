"""Compiled kernels against the same steps by torch: values, gradients and dropped elements, whatever the shapes."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny_models import mixed_batch, mixed_model
from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.data.blocks import sequence_blocks
from mtl.models.dropout import DropoutKey
from mtl.models.kernels.calls import KernelDropout
from mtl.models.masks import keep_features, pair_numbers, site_rows, threshold_of
from mtl.models.native.attention import grouping
from mtl.models.native.kernel_steps import KernelLayerSteps, KernelSteps
from mtl.models.native.parts import EncoderParts, LayerParts
from mtl.models.native.site_rows import SiteRows
from mtl.models.native.steps import LayerSteps, Steps
from mtl.models.native.torch_steps import TorchSteps
from mtl.runtime.precision import forward_context

LENGTHS = np.array([5, 17, 1, 70, 33, 16, 3])
TOKENS, FILLER = int(LENGTHS.sum()), 3
ROWS = TOKENS + FILLER
# Head widths below, at and beyond what a vector holds, and some that are no multiple of it.
SHAPES = [(1, 3), (2, 8), (3, 20), (2, 64), (1, 80)]
PRECISIONS = [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)]


@dataclass(frozen=True)
class Sides:
    """The same layer's steps by kernels and by torch."""

    compiled: Steps
    reference: Steps
    width: int
    heads: int


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Work dealt to several threads is the same work."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def sides(library: ctypes.CDLL, heads: int, head_width: int, rate: float, dtype: torch.dtype) -> Sides:
    """A layer that drops at ``rate`` in all of its sites, over sequences of LENGTHS."""
    width = heads * head_width
    layer = cast(
        "LayerParts",
        SimpleNamespace(
            heads=heads,
            attention_site="attention",
            attention_rate=rate,
            attention_dropout=SimpleNamespace(site="attention output", p=rate),
            output_dropout=SimpleNamespace(site="output", p=rate),
            attention_norm=norm_of(width, 1),
            output_norm=norm_of(width, 2),
            contract=SimpleNamespace(out_features=width),
        ),
    )
    parts = cast("EncoderParts", SimpleNamespace(layers=(layer, layer)))
    sites = SiteRows.__new__(SiteRows)
    names = ("attention", "attention output", "output")
    hashes = site_rows(torch.arange(ROWS, dtype=torch.int32) * 7919, [11, 12, 13])
    sites._rows = dict(zip(names, hashes.unbind(0), strict=True))
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(LENGTHS)]))
    batch = SimpleNamespace(sequence_offsets=offsets, layout=SimpleNamespace(sequence_lengths=LENGTHS))
    groups = grouping(sequence_blocks(LENGTHS), offsets[:-1], ROWS, heads, dtype)
    by_kernels = KernelSteps(library, parts, cast("PackedBatch", batch), sites)
    return Sides(by_kernels, TorchSteps(parts, groups, sites), width, heads)


def norm_of(width: int, seed: int) -> nn.LayerNorm:
    norm = nn.LayerNorm(width, eps=1e-12)
    norm.weight.data, norm.bias.data = values(width, seed=seed).detach() + 2.0, values(width, seed=seed + 9).detach()
    return norm


def values(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def assert_same(found: Tensor, expected: Tensor, inputs: Sequence[Tensor], tolerance: float) -> None:
    """Values and the gradients of all inputs agree, in units of the reference's largest value."""
    readout = torch.cos(torch.arange(expected.numel(), dtype=torch.float32)).view(expected.shape)
    gradients = [torch.autograd.grad((out.float() * readout).sum(), inputs) for out in (found, expected)]
    for one, other in [(found, expected), *zip(*gradients, strict=True)]:
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = max(float(other.detach().float().abs().max()), 1e-6)
        assert float((one.detach().float() - other.detach().float()).abs().max()) <= tolerance * scale


@pytest.mark.parametrize("rate", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize(("heads", "head_width"), SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.usefixtures("threads")
def test_attention_equals_torch(
    dtype: torch.dtype, tolerance: float, heads: int, head_width: int, rate: float, compiled_library: ctypes.CDLL
) -> None:
    both = sides(compiled_library, heads, head_width, rate, dtype)
    projected = values(ROWS, 3 * both.width, dtype=dtype)
    ours, reference = (steps.layer(0).attend(projected) for steps in (both.compiled, both.reference))
    assert not ours[TOKENS:].any()
    # What is in filler reaches nothing; the reference reads its gradient as well, which must be zero.
    assert_same(ours[:TOKENS], reference[:TOKENS], [projected], tolerance)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize(("heads", "head_width"), SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.usefixtures("threads")
def test_attention_from_first_tokens_equals_torch(
    dtype: torch.dtype, tolerance: float, heads: int, head_width: int, rate: float, compiled_library: ctypes.CDLL
) -> None:
    both = sides(compiled_library, heads, head_width, rate, dtype)
    hidden, others = values(ROWS, both.width, dtype=dtype), values(ROWS, 2 * both.width, seed=1, dtype=dtype)
    ours, reference = (
        steps.in_batch_order(steps.last_layer_at_firsts().attend_from_first(hidden[steps.firsts], others))
        for steps in (both.compiled, both.reference)
    )
    assert_same(ours, reference, [hidden, others], tolerance)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize(("heads", "head_width"), SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.usefixtures("threads")
def test_both_norms_equal_torch(
    first: bool,
    dtype: torch.dtype,
    tolerance: float,
    heads: int,
    head_width: int,
    rate: float,
    compiled_library: ctypes.CDLL,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # In bf16 torch adds up the gradients of a norm's parameters in bf16 too, which is no reference for fp32 sums.
    monkeypatch.setattr("mtl.models.native.residual._widens", lambda device: True)
    both = sides(compiled_library, heads, head_width, rate, dtype)
    # A norm over three features may divide by next to nothing.
    tolerance = tolerance * 10 if both.width == 3 else tolerance
    output, residual = values(ROWS, both.width, dtype=dtype), values(ROWS, both.width, seed=1, dtype=dtype)
    for name in ("attention_norm", "output_norm"):

        def normed(steps: Steps, name: str = name) -> Tensor:
            layer = steps.last_layer_at_firsts() if first else steps.layer(0)
            step: Callable[[Tensor, Tensor], Tensor] = getattr(layer, name)
            if not first:
                return step(output, residual)
            return steps.in_batch_order(step(output[steps.firsts], residual[steps.firsts]))

        layer: Any = both.compiled.layer(0)
        parameters = list(getattr(layer._layer, name).parameters())
        inputs = [output, residual, *parameters]
        assert_same(normed(both.compiled), normed(both.reference), inputs, tolerance)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_not_finite_stays_so(dtype: torch.dtype, bad: float, compiled_library: ctypes.CDLL) -> None:
    both = sides(compiled_library, 2, 20, 0.0, dtype)
    layer: LayerSteps = both.compiled.layer(0)
    for place in range(0, 3 * both.width, 7):
        projected = values(ROWS, 3 * both.width, dtype=dtype).detach()
        projected[LENGTHS[0] + 2, place] = bad
        hit = layer.attend(projected)[LENGTHS[0] : LENGTHS[0] + LENGTHS[1]]
        assert not hit.isfinite().all()
        assert layer.attend(projected)[: LENGTHS[0]].isfinite().all()
    for place in range(both.width):
        output = values(ROWS, both.width, dtype=dtype).detach()
        output[1, place] = bad
        normed = layer.output_norm(output, output)
        assert not normed[1].isfinite().any()
        assert normed[2:].isfinite().all()


def test_gradients_that_lie_across_memory_are_read_as_what_they_are(compiled_library: ctypes.CDLL) -> None:
    both = sides(compiled_library, 2, 8, 0.3, torch.float32)
    projected, output = values(ROWS, 3 * both.width), values(ROWS, both.width, seed=3)
    found = []
    for steps in (both.compiled.layer(0), both.reference.layer(0)):
        # The gradient of a sum is one number without memory of its own for each row; that of a transpose lies across.
        loss = steps.attend(projected)[:TOKENS].sum()
        loss = loss + (steps.output_norm(output, output).t() * output.detach().t()).sum()
        found.append(torch.autograd.grad(loss, [projected, output]))
    for ours, reference in zip(*found, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-5)


def test_rows_with_gaps_between_them_are_read_as_what_they_are(compiled_library: ctypes.CDLL) -> None:
    both = sides(compiled_library, 2, 8, 0.0, torch.float32)
    wide = values(ROWS, 6 * both.width)
    projected, output = wide[:, : 3 * both.width], values(both.width, ROWS).t()
    for name, arguments in (("attend", (projected,)), ("output_norm", (output, projected[:, : both.width]))):
        ours, reference = (getattr(steps.layer(0), name)(*arguments) for steps in (both.compiled, both.reference))
        assert_same(ours[:TOKENS], reference[:TOKENS], [wide], 1e-4)


def test_other_types_are_refused_before_c_reads_them(compiled_library: ctypes.CDLL) -> None:
    both = sides(compiled_library, 2, 8, 0.0, torch.float32)
    layer, rows = both.compiled.layer(0), values(ROWS, both.width).detach()
    with pytest.raises(TypeError, match="bfloat16"):
        layer.output_norm(rows, rows.bfloat16())
    with pytest.raises(TypeError, match="bfloat16"):
        both.compiled.last_layer_at_firsts().attend_from_first(rows[: len(LENGTHS)].bfloat16(), rows.repeat(1, 2))
    cast("Any", layer)._layer.output_norm.double()
    with pytest.raises(TypeError, match="float64"):
        layer.output_norm(rows, rows)


@pytest.mark.parametrize("rate", [2**-16, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("features", [1, 31, 32, 33, 384])
def test_a_norm_drops_what_the_masks_say(features: int, rate: float, compiled_library: ctypes.CDLL) -> None:
    hashes = site_rows(torch.arange(50, dtype=torch.int32) * 7919, [5])[0]
    dropout = KernelDropout(hashes, pair_numbers(1, 64 * (features // 64 + 1), hashes.device), threshold_of(rate))
    layer = SimpleNamespace(output_norm=nn.LayerNorm(features))
    steps = KernelLayerSteps(compiled_library, cast("LayerParts", layer), torch.empty(0), None, None, dropout)
    inputs = values(50, features)
    residual = values(50, features, seed=1).detach()
    normed = steps.output_norm(inputs, residual)
    kept = keep_features(torch.arange(50, dtype=torch.int32) * 7919, features, rate, 5).bits.bool()
    [gradient] = torch.autograd.grad((normed * values(50, features, seed=2).detach()).sum(), [inputs])
    assert not gradient[~kept].any()
    if features > 1:
        assert gradient[kept].count_nonzero() > 0.99 * int(kept.sum())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_same_pass_twice_is_the_same_to_the_bit(precision: Any, compiled_library: ctypes.CDLL) -> None:
    found = []
    torch.set_num_threads(3)
    try:
        for _ in range(2):
            model, batch = mixed_model("bert", "native"), mixed_batch()
            with forward_context(precision, torch.device("cpu")):
                losses = model.losses(model(batch, DropoutKey(1, 3)), batch)
            torch.stack([each.sum() for each in losses.values()]).sum().backward()
            found.append([each.grad for each in model.parameters() if each.grad is not None])
    finally:
        torch.set_num_threads(1)
    assert len(found[0]) > 20
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_model_really_takes_them(compiled_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a kernel's step was done by torch")

    monkeypatch.setattr("mtl.models.native.torch_steps.attend", refuse)
    monkeypatch.setattr("mtl.models.native.torch_steps.residual_norm", refuse)
    model, batch = mixed_model("bert", "native"), mixed_batch()
    assert model(batch, DropoutKey(1, 3))
    monkeypatch.setattr("mtl.models.kernels.compiled._loaded", None)
    with pytest.raises(AssertionError, match="by torch"):
        model(batch, DropoutKey(1, 3))
