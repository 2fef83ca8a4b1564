"""The operators that updates spend their time in, by torch's own profiler."""

from collections.abc import Iterator
from itertools import islice

import torch

from mtl.bench.records import OperatorTime
from mtl.training.prepared import PreparedUpdate
from mtl.training.update import Updater

_LISTED = 20


def profile_operators(
    updater: Updater, updates: Iterator[PreparedUpdate], count: int, device: torch.device
) -> tuple[OperatorTime, ...]:
    """The operators with the most time of their own over ``count`` updates: on the device where there is a GPU.

    Profiling slows an update down, small operators most; the shares are for finding what to look at.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        for update in islice(updates, count):
            updater.run(update)
    name = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    events = [(event.key, int(event.count), getattr(event, name) / 1e6) for event in profiler.key_averages()]
    return largest_first(events)


def largest_first(events: list[tuple[str, int, float]]) -> tuple[OperatorTime, ...]:
    """The operators (name, calls, seconds) with the largest times first, with their shares of all."""
    total = sum(seconds for _, _, seconds in events)
    chosen = sorted(events, key=lambda event: -event[2])[:_LISTED]
    return tuple(
        OperatorTime(operator=key, calls=calls, seconds=seconds, share=seconds / total)
        for key, calls, seconds in chosen
        if seconds > 0
    )
