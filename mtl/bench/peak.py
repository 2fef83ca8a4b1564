"""What the machine can do at this moment: the rate of a large matrix product in the precision of the training."""

import time
from collections.abc import Callable

import torch

from mtl.runtime.precision import Precision
from mtl.training.tracking import synchronise

_SIZES = {"cpu": (2048, 4096), "cuda": (4096, 8192)}
_REPEATS = 5
_LONGEST = 0.25


def measure_peak(
    device: torch.device,
    precision: Precision,
    *,
    sizes: tuple[int, ...] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The best rate of products of square random matrices, in operations a second, on torch's present threads.

    Each size is multiplied once untimed, then several times by the clock, waiting for the device each time; a size that
    would take longer than a quarter of a second is left out unless it is the first. Random content: zeros draw less
    power and run faster. No global random generator is used.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    generator = torch.Generator(device).manual_seed(1)
    best = 0.0
    for size in sizes or _SIZES[device.type]:
        if best and product_operations(size) / best > _LONGEST:
            break
        first, second = (torch.randn(size, size, device=device, generator=generator).to(dtype) for _ in range(2))
        product = first @ second
        synchronise(device)
        for _ in range(_REPEATS):
            began = clock()
            torch.matmul(first, second, out=product)
            synchronise(device)
            best = max(best, product_operations(size) / (clock() - began))
    return best


def product_operations(size: int) -> float:
    """Operations of a product of two square matrices: a multiplication and an addition for each of size^3."""
    return 2.0 * size**3
