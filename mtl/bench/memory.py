"""The most memory a measuring process has used."""

import resource
import sys

import torch


def peak_memory(device: torch.device) -> int:
    """Bytes: of tensors on a GPU since the last :func:`forget_peak`, of the whole process on a CPU since its start."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return most if sys.platform == "darwin" else most * 1024


def forget_peak(device: torch.device) -> None:
    """Begin anew on a GPU; what a process on a CPU has used cannot be forgotten."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
