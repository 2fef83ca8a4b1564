"""Finding what makes the host wait for a GPU, with or without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
# Each needs a value, or a size that depends on values, on the host.
_READS = {
    _aten._local_scalar_dense.default,
    _aten.equal.default,
    _aten.is_nonzero.default,
    _aten.nonzero.default,
    _aten.masked_select.default,
    _aten._unique2.default,
    _aten.unique_dim.default,
    _aten.unique_consecutive.default,
    _aten.bincount.default,
}
_INDEXED = {_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default, _aten._index_put_impl_.default}
_COPIES = {_aten._to_copy.default, _aten.copy_.default}


class HostWaitError(RuntimeError):
    """An operation that waits for the device."""


class RefuseWaits(TorchDispatchMode):
    """Raises HostWaitError for operations that would wait on a GPU, whatever the device of their tensors is.

    It sees what Python calls, forward and backward, not what an operator does inside, and not what is no operator for
    tensors of a CPU (``tolist``, ``cpu``). A copy to another device must be from page-locked memory and must not block.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _READS or (func in _INDEXED and _by_mask(args[1])):
            raise HostWaitError(f"{func} needs values on the host")
        if func is _aten.repeat_interleave.Tensor and kwargs.get("output_size") is None:
            raise HostWaitError(f"{func} without output_size needs a size from the device")
        result = func(*args, **kwargs)
        if func in _COPIES:
            _check_copy(func, result, args, kwargs)
        return result


def _by_mask(indices: Any) -> bool:
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)


def _check_copy(func: Any, result: Tensor, args: Any, kwargs: Any) -> None:
    source = args[1] if func is _aten.copy_.default else args[0]
    if source.device.type == result.device.type:
        return
    if func is _aten.copy_.default:
        non_blocking = args[2] if len(args) > 2 else kwargs.get("non_blocking", False)
    else:
        non_blocking = kwargs.get("non_blocking", False)
    if source.device.type != "cpu" or not non_blocking or not source.is_pinned():
        raise HostWaitError(f"{func} from {source.device.type} to {result.device.type} waits")


@contextmanager
def no_waiting(device: torch.device) -> Iterator[None]:
    """Raise wherever the host would wait for the device: by what Python calls, and on a GPU by CUDA's own count too."""
    if device.type != "cuda":
        with RefuseWaits():
            yield
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with RefuseWaits():
            yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
