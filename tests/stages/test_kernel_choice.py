"""A run keeps the rounding that it began with, as far as kernels go, and writes down which it has."""

import ctypes

import pytest

from mtl.config.load import load_config
from mtl.models.kernels.compiled import compiled_kernels
from mtl.stages.environment import RunEnvironment, start_hardware


def begun_with(kernels: str) -> RunEnvironment:
    return RunEnvironment.model_construct(
        kernels=kernels, device="cpu", precision="fp32", precision_reason="as begun", threads=1, ranks=1
    )


@pytest.mark.parametrize(
    ("setting", "began", "compiled"),
    [
        ("auto", None, True),
        ("auto", "compiled", True),
        ("auto", "torch", False),
        ("compiled", "torch", True),
        ("torch", "compiled", False),
    ],
)
def test_what_a_run_began_with_holds_unless_it_is_set(
    setting: str, began: str | None, compiled: bool, compiled_library: ctypes.CDLL, caplog: pytest.LogCaptureFixture
) -> None:
    del compiled_library  # Skips where there is no compiler.
    config = load_config("quickstart", [f"training.kernels={setting}", "training.device=cpu"])
    with caplog.at_level("INFO", logger="mtl"):
        start_hardware(config, None if began is None else begun_with(began))
    assert (compiled_kernels() is not None) is compiled
    assert ("began without" in caplog.text) is (setting == "auto" and began == "torch")
