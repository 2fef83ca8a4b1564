"""Calls of the compiled kernels on tensors: the one place where addresses are handed to C.

Tensors are on the CPU, contiguous, in bf16 or fp32. Letters: R rows, D width, S sequences, H heads.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mtl.models.masks import Threshold

KINDS = {torch.float32: 0, torch.bfloat16: 1}
"""What C calls the types of elements: ``kind`` of vectors.h."""


@dataclass(frozen=True)
class KernelDropout:
    """Hashes of rows (R,), and of pairs of features (H, pairs) with room beyond the last; both int32."""

    rows: Tensor
    pairs: Tensor
    threshold: Threshold


class _Dropout(ctypes.Structure):
    """``dropout`` of vectors.h."""

    _fields_ = (
        ("rows", ctypes.c_void_p),
        ("pairs", ctypes.c_void_p),
        ("pairs_stride", ctypes.c_long),
        ("least", ctypes.c_int),
        ("scale", ctypes.c_float),
    )


class _Attention(ctypes.Structure):
    """``attention`` of attention.c."""

    _fields_ = (
        ("sequences", ctypes.c_long),
        ("heads", ctypes.c_long),
        ("head_width", ctypes.c_long),
        ("query_starts", ctypes.c_void_p),
        ("key_starts", ctypes.c_void_p),
        ("query", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("query_stride", ctypes.c_long),
        ("key_stride", ctypes.c_long),
        ("value_stride", ctypes.c_long),
        ("drop", _Dropout),
    )


class _Norm(ctypes.Structure):
    """``norm`` of residual_norm.c."""

    _fields_ = (
        ("rows", ctypes.c_long),
        ("width", ctypes.c_long),
        ("weight", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("epsilon", ctypes.c_float),
        ("drop", _Dropout),
    )


@dataclass(frozen=True)
class AttentionCall:
    """Attention of ``queries`` (rows by ``query_starts``) to ``keys`` and ``values`` (rows by ``key_starts``).

    The three are rows of width D that may stand side by side in one tensor; ``*_starts`` (S + 1,) int64.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    query_starts: Tensor
    key_starts: Tensor
    heads: int
    dropout: KernelDropout | None

    def _structure(self) -> _Attention:
        parts = (self.queries, self.keys, self.values)
        return _Attention(
            self.key_starts.numel() - 1,
            self.heads,
            self.queries.shape[1] // self.heads,
            self.query_starts.data_ptr(),
            self.key_starts.data_ptr(),
            *(part.data_ptr() for part in parts),
            *(part.stride(0) for part in parts),
            _dropout(self.dropout),
        )

    def forward(self, library: ctypes.CDLL, out_RD: Tensor) -> None:
        """Attended values of every query's row; rows of no sequence are left alone. TypeError for mixed types."""
        _check_types(self.queries.dtype, self.keys, self.values, out_RD)
        library.mtl_attention_forward(
            KINDS[out_RD.dtype],
            ctypes.byref(self._structure()),
            _address(out_RD),
            ctypes.c_long(out_RD.stride(0)),
            torch.get_num_threads(),
        )

    def backward(self, library: ctypes.CDLL, gradient_RD: Tensor, out: Sequence[Tensor]) -> None:
        """Gradients of queries, keys and values, which have the strides of these."""
        library.mtl_attention_backward(
            KINDS[gradient_RD.dtype],
            ctypes.byref(self._structure()),
            _address(gradient_RD),
            ctypes.c_long(gradient_RD.stride(0)),
            *map(_address, out),
            torch.get_num_threads(),
        )


@dataclass(frozen=True)
class NormCall:
    """Dropout of rows (R, D), their residual and the norm with these fp32 parameters."""

    weight: Tensor
    bias: Tensor
    epsilon: float
    dropout: KernelDropout | None

    def _structure(self, rows: Tensor) -> _Norm:
        return _Norm(
            *rows.shape,
            self.weight.data_ptr(),
            self.bias.data_ptr(),
            self.epsilon,
            _dropout(self.dropout),
        )

    def forward(self, library: ctypes.CDLL, inputs: Tensor, residual: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The normed rows, the sums that were normed, and their means and inverse deviations (R,).

        TypeError for inputs and a residual of different types, or parameters in another than fp32.
        """
        _check_types(inputs.dtype, residual)
        _check_types(torch.float32, self.weight, self.bias)
        out, summed = torch.empty_like(inputs), torch.empty_like(inputs)
        statistics = self.weight.new_empty(2, inputs.shape[0])
        library.mtl_residual_norm_forward(
            KINDS[inputs.dtype],
            ctypes.byref(self._structure(inputs)),
            *map(_address, (inputs, residual, summed, statistics[0], statistics[1], out)),
            torch.get_num_threads(),
        )
        return out, summed, statistics[0], statistics[1]

    def backward(
        self, library: ctypes.CDLL, gradient: Tensor, summed: Tensor, means: Tensor, deviations: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of inputs, residual, weight and bias."""
        to_residual = torch.empty_like(gradient)
        to_inputs = to_residual if self.dropout is None else torch.empty_like(gradient)
        threads = torch.get_num_threads()
        parts = self.weight.new_empty(2, threads, gradient.shape[1])
        library.mtl_residual_norm_backward(
            KINDS[gradient.dtype],
            ctypes.byref(self._structure(gradient)),
            *map(_address, (gradient, summed, means, deviations, to_inputs, to_residual, parts[0], parts[1])),
            threads,
        )
        to_weight, to_bias = parts.sum(1).unbind(0)
        return to_inputs, to_residual, to_weight, to_bias


def _check_types(wanted: torch.dtype, *tensors: Tensor) -> None:
    """What C reads as the type that it is told would otherwise be read as another."""
    for tensor in tensors:
        if tensor.dtype != wanted:
            raise TypeError(f"a kernel was given {tensor.dtype} where it reads {wanted}")


def _address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _dropout(dropout: KernelDropout | None) -> _Dropout:
    if dropout is None:
        return _Dropout(None, None, 0, 0, 1.0)
    rows, pairs, threshold = dropout.rows, dropout.pairs, dropout.threshold
    return _Dropout(rows.data_ptr(), pairs.data_ptr(), pairs.stride(0), threshold.least, threshold.scale)
