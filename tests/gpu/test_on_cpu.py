"""The checks for GPUs are run on the CPU too: it must pass them, and so the checks themselves are known to work."""

from typing import Any

import pytest

from mtl.models.heads import SequenceHead
from tests.gpu import device_checks as checks
from tests.gpu.waits import HostWaitError

POOLINGS = ("first_dense", "mean")


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("way", checks.WAYS)
def test_equal_to_the_packed_way(way: str, pooling: Any) -> None:
    checks.check_equal_to_cpu(checks.CPU, way, pooling)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_ways_agree(precision: Any, pooling: Any) -> None:
    checks.check_ways_agree(checks.CPU, precision, pooling)


@pytest.mark.parametrize(("precision", "way"), [("fp32", "native"), ("bf16", "packed")])
def test_repeats(precision: Any, way: str) -> None:
    checks.check_repeats(checks.CPU, precision, way, "mean")


def test_resumes() -> None:
    checks.check_resumes(checks.CPU)


@pytest.mark.parametrize("needs", checks.NEEDS)
@pytest.mark.parametrize(("way", "pooling"), [("native", "first_dense"), ("native", "mean"), ("packed", "mean")])
def test_no_update_would_wait_for_a_gpu(way: str, pooling: Any, needs: str) -> None:
    checks.check_no_waiting(checks.CPU, way, pooling, "fp32", needs)


def test_a_head_that_waits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = SequenceHead.forward

    def waiting(self: SequenceHead, *arguments: Any) -> Any:
        outputs = forward(self, *arguments)
        return outputs if float(outputs.detach().sum()) else -outputs

    monkeypatch.setattr(SequenceHead, "forward", waiting)
    with pytest.raises(HostWaitError):
        checks.check_no_waiting(checks.CPU, "native", "first_dense", "fp32", "nothing")


def test_late_flag() -> None:
    checks.check_late_flag(checks.CPU)


def test_out_of_memory() -> None:
    checks.check_out_of_memory(checks.CPU, checks.refusing, rows=300)


@pytest.mark.parametrize("way", checks.WAYS)
def test_evaluation(way: str) -> None:
    checks.check_evaluation(checks.CPU, way)
