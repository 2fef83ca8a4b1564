"""The checks on a real GPU. Skipped, and so unproven, where there is none."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mtl.config.load import load_config
from mtl.runtime.device import choose_device, to_device
from tests.gpu import device_checks as checks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: torch.cuda is not available")

GPU = torch.device("cuda", 0)
POOLINGS = ("first_dense", "mean")


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    """TF32 off, as it is by default: products in fp32 have three digits less with it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("way", checks.WAYS)
def test_equal_to_cpu(way: str, pooling: Any) -> None:
    checks.check_equal_to_cpu(GPU, way, pooling)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_ways_agree(precision: Any, pooling: Any) -> None:
    checks.check_ways_agree(GPU, precision, pooling)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("way", checks.WAYS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_repeats(precision: Any, way: str, pooling: Any) -> None:
    checks.check_repeats(GPU, precision, way, pooling)


def test_resumes() -> None:
    checks.check_resumes(GPU)


@pytest.mark.parametrize("needs", checks.NEEDS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("way", ["native", "packed"])
def test_no_update_waits(way: str, pooling: Any, precision: Any, needs: str) -> None:
    checks.check_no_waiting(GPU, way, pooling, precision, needs)


def test_late_flag() -> None:
    checks.check_late_flag(GPU)


def test_out_of_memory() -> None:
    # Large, so that what the allocator rounds up to is little beside what is cut off.
    checks.check_out_of_memory(GPU, checks.little_gpu_memory, rows=40_000)


@pytest.mark.parametrize("way", checks.WAYS)
def test_evaluation(way: str) -> None:
    checks.check_evaluation(GPU, way)


def test_copies_from_the_host_are_from_page_locked_memory() -> None:
    with checks.no_waiting(GPU):
        copied = to_device(torch.arange(6.0), GPU)
    assert copied.device == GPU
    assert copied.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_batches_are_page_locked() -> None:
    batch = checks.training(GPU).update(0).batches[0]
    assert batch.token_ids.is_pinned()
    assert batch.blocks.inverse.is_pinned()
    assert all(block.index.is_pinned() for block in batch.blocks.blocks)


def test_a_gpu_is_chosen_by_default() -> None:
    assert choose_device(load_config("quickstart").training.device).type == "cuda"
