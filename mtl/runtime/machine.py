"""The machine as the system describes it, told without loading torch."""

import os
import platform
from importlib import metadata
from pathlib import Path


def processor_name() -> str | None:
    """The processor's name; None where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or None)


def usable_cores() -> int | None:
    """The cores this process may run on: fewer than the machine has under taskset or Slurm."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def asked_threads(threads: int | None) -> int | None:
    """The threads torch will use: as set, else as the environment asks; None where torch is left to choose."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return threads or (int(asked) if asked.isdecimal() else None)


def torch_version() -> str | None:
    """The installed torch's version; None where there is none."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
