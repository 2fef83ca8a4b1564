"""Calls of the compiled kernels that an optimiser makes: one for all of its tensors.

Tensors are on the CPU and contiguous; gradients in bf16 or fp32, all else in fp32 where nothing is said.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mtl.models.kernels.calls import KINDS

# ``stepped`` of adamw.c and ``counted`` of square_sum.c; every field has eight bytes.
_POINTERS = ("parameter", "mean", "square", "taken", "copy", "gradient", "reached")
_STEPPED = np.dtype(
    [(name, np.int64) for name in (*_POINTERS, "count", "width", "type")]
    + [(name, np.float64) for name in ("rate", "decay")]
)
_COUNTED = np.dtype([(name, np.int64) for name in ("elements", "count", "type")])


@dataclass(frozen=True)
class SteppedParameter:
    """A parameter, its gradient, its moments, the number of its steps (one float), its learning rate and decay.

    ``copy`` in bf16 becomes the rounded parameter. ``reached`` (V,) uint8 is zero for rows of a table (V, E) whose
    moments and gradient are zero.
    """

    parameter: Tensor
    gradient: Tensor
    mean: Tensor
    square: Tensor
    taken: Tensor
    rate: float
    decay: float
    copy: Tensor | None = None
    reached: Tensor | None = None

    def row(self) -> tuple[float, ...]:
        """The C structure's fields; TypeError for tensors that are not as the kernel reads them."""
        parameter, gradient = self.parameter, self.gradient
        for part in (parameter, self.mean, self.square):
            _check(part, torch.float32, parameter.shape)
        _check(gradient, gradient.dtype, parameter.shape)
        _check(self.taken, torch.float32, torch.Size())
        if self.copy is not None:
            _check(self.copy, torch.bfloat16, parameter.shape)
        if self.reached is not None:
            _check(self.reached, torch.uint8, parameter.shape[:1])
        tensors = (parameter, self.mean, self.square, self.taken, self.copy, gradient, self.reached)
        addresses = (0 if tensor is None else tensor.data_ptr() for tensor in tensors)
        width = 1 if self.reached is None else parameter.shape[1]
        return (*addresses, parameter.numel(), width, KINDS[gradient.dtype], self.rate, self.decay)


class _Settings(ctypes.Structure):
    """``settings`` of adamw.c."""

    _fields_ = tuple((name, ctypes.c_double) for name in ("beta1", "beta2", "epsilon", "excess"))


def adamw_step(
    library: ctypes.CDLL,
    stepped: Sequence[SteppedParameter],
    betas: tuple[float, float],
    epsilon: float,
    excess: float,
) -> None:
    """Take a step of AdamW (Loshchilov and Hutter 2019, algorithm 2) in place, gradients divided by ``excess``."""
    table = np.array([each.row() for each in stepped], _STEPPED)
    # A profile would know nothing of it otherwise: kernels are no operators of torch.
    with torch.profiler.record_function("mtl_adamw"):
        library.mtl_adamw(
            ctypes.c_void_p(table.ctypes.data),
            ctypes.c_long(len(table)),
            ctypes.byref(_Settings(*betas, epsilon, excess)),
            torch.get_num_threads(),
        )
    # Whoever keeps a parameter for a backward pass hears that it has changed.
    torch.autograd.graph.increment_version([each.parameter for each in stepped])


def square_sum(library: ctypes.CDLL, tensors: Sequence[Tensor]) -> float:
    """The sum of the squares of all elements, the same for any number of threads; TypeError as above."""
    for tensor in tensors:
        _check(tensor, tensor.dtype, tensor.shape)
    rows = [(tensor.data_ptr(), tensor.numel(), KINDS[tensor.dtype]) for tensor in tensors]
    table = np.array(rows, _COUNTED)
    library.mtl_square_sum.restype = ctypes.c_double
    arguments = (ctypes.c_void_p(table.ctypes.data), ctypes.c_long(len(table)), torch.get_num_threads())
    with torch.profiler.record_function("mtl_square_sum"):
        found: float = library.mtl_square_sum(*arguments)
    return found


def _check(tensor: Tensor, dtype: torch.dtype, shape: torch.Size) -> None:
    """What C reads as the type and size that it is told would otherwise be read as another."""
    if tensor.dtype != dtype or dtype not in (*KINDS, torch.uint8):
        raise TypeError(f"a kernel was given {tensor.dtype} where it reads {dtype}")
    if tensor.shape != shape or not tensor.is_contiguous():
        raise TypeError(f"a kernel was given {tuple(tensor.shape)} where it reads {tuple(shape)}, without gaps")
