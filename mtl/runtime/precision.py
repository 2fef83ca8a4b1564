"""The number format of the forward pass: chosen once, with a reason a user can read, then applied in one way."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, NamedTuple

import torch

Precision = Literal["fp32", "bf16"]


class PrecisionChoice(NamedTuple):
    """A precision, and a sentence saying why it was chosen."""

    name: Precision
    reason: str


def choose_precision(requested: Literal["auto", "fp32", "bf16"], device: torch.device) -> PrecisionChoice:
    """The precision asked for, or with ``auto`` the faster one that is safe on ``device``.

    ``auto`` takes bf16 only where the hardware multiplies it natively: emulated it is both slower and less exact than
    fp32. An explicit wish is always granted, and the reason says what it costs.
    """
    native, hardware = _native_bf16(device)
    if requested == "fp32":
        return PrecisionChoice("fp32", "fp32 was asked for.")
    if requested == "bf16":
        cost = "" if native else ", though emulation makes it slower than fp32"
        return PrecisionChoice("bf16", f"bf16 was asked for; {hardware}{cost}.")
    if native:
        return PrecisionChoice("bf16", f"bf16 was chosen: {hardware}.")
    return PrecisionChoice("fp32", f"fp32 was chosen: {hardware}, so bf16 would be slower.")


def forward_context(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """A fresh context for one forward pass: autocast to bf16, or nothing for fp32. Weights stay fp32 in both.

    Autocast's cache of converted weights is off. With it, a forward without gradients inside the region (an
    evaluation, the first of two forwards) would leave bf16 copies that carry no gradient, and the next training
    forward would use them: the encoder would silently stop learning. The copies would also outlive an optimiser step.
    """
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False)


def _native_bf16(device: torch.device) -> tuple[bool, str]:
    """Whether ``device`` multiplies bf16 matrices in hardware, and a clause that says so."""
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return native, f"this GPU {'has' if native else 'lacks'} bf16 arithmetic"
    capabilities = torch.cpu.get_capabilities()
    found = [name for name in ("amx_bf16", "avx512_bf16") if capabilities.get(name)]
    if found:
        return True, f"this processor multiplies bf16 in hardware ({', '.join(found)})"
    return False, "this processor has neither amx_bf16 nor avx512_bf16"
