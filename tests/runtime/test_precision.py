"""Precision: chosen by what the hardware can do, and safe around forwards without gradients."""

import pytest
import torch

from mtl.runtime import precision

CPU = torch.device("cpu")


def _pretend(monkeypatch: pytest.MonkeyPatch, **capabilities: bool) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)


@pytest.mark.parametrize("capability", ["amx_bf16", "avx512_bf16"])
def test_auto_takes_bf16_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch, capability: str) -> None:
    _pretend(monkeypatch, **{capability: True})
    choice = precision.choose_precision("auto", CPU)
    assert choice.name == "bf16"
    assert capability in choice.reason


def test_auto_takes_fp32_elsewhere_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch, avx512_f=True, amx_bf16=False)
    choice = precision.choose_precision("auto", CPU)
    assert choice.name == "fp32"
    assert "slower" in choice.reason


def test_auto_on_a_gpu_asks_for_native_bf16_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert precision.choose_precision("auto", torch.device("cuda")).name == "fp32"


def test_a_wish_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch)
    choice = precision.choose_precision("bf16", CPU)
    assert choice.name == "bf16"
    assert "slower" in choice.reason
    _pretend(monkeypatch, amx_bf16=True)
    assert precision.choose_precision("fp32", CPU).name == "fp32"


@pytest.mark.parametrize(("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_the_forward_runs_in_the_chosen_format(name: precision.Precision, dtype: torch.dtype) -> None:
    layer = torch.nn.Linear(4, 4)
    with precision.forward_context(name, CPU):
        assert layer(torch.ones(2, 4)).dtype == dtype
    assert layer.weight.dtype == torch.float32


def test_a_forward_without_gradients_does_not_freeze_the_weights() -> None:
    layer = torch.nn.Linear(4, 4)
    with precision.forward_context("bf16", CPU):
        with torch.no_grad():
            layer(torch.ones(2, 4))
        layer(torch.ones(2, 4)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.abs().sum() > 0
