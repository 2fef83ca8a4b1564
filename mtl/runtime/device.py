"""Which device a run uses, and a plain description of the machine and the software for its record."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import torch
from pydantic import JsonValue

from mtl.errors import ConfigError
from mtl.runtime.processes import usable_cores
from mtl.runtime.torchrun import launched_ranks, local_rank

PACKAGES = (
    "torch",
    "transformers",
    "datasets",
    "tokenizers",
    "safetensors",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
)


def choose_device(requested: str) -> torch.device:
    """The device called ``auto`` (a GPU where there is one), ``cpu``, ``cuda`` or ``cuda:N``.

    Of several ranks on a machine each gets a GPU of its own, and ``cuda:N`` cannot be meant. Raises ``ConfigError`` for
    any other name and for a GPU that is not there: a run never falls back in silence.
    """
    if requested == "auto":
        requested = "cuda" if torch.cuda.is_available() else "cpu"
    if requested == "cuda" and launched_ranks() > 1:
        requested = f"cuda:{local_rank()}"
    elif requested.startswith("cuda:") and launched_ranks() > 1:
        raise ConfigError(f"training.device={requested!r} names one GPU for several ranks: use auto or cuda")
    kind, colon, index = requested.partition(":")
    if requested != "cpu" and (kind != "cuda" or (colon and not index.isdecimal())):
        raise ConfigError(f"training.device={requested!r} is unknown: use auto, cpu, cuda or cuda:N")
    if kind == "cuda":
        _require_gpu(requested, int(index or 0))
        if launched_ranks() > 1:
            torch.cuda.set_device(int(index))
    return torch.device(requested)


def _require_gpu(requested: str, index: int) -> None:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = f" (CUDA_VISIBLE_DEVICES is {visible!r})" if visible is not None else ""
        raise ConfigError(
            f"training.device={requested!r}, but torch {torch.__version__} sees {count} GPUs{hint}: "
            "use training.device=auto or cpu, or install a driver and a build of torch that match"
        )


def describe_hardware() -> dict[str, JsonValue]:
    """Processor, cores, threads, memory in bytes and GPU names; None where the system does not say."""
    gpus: list[JsonValue] = []
    if torch.cuda.is_available():
        gpus.extend(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    return {
        "processor": _processor_name(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "cores_usable": usable_cores(),
        "threads": torch.get_num_threads(),
        "memory_bytes": _memory_bytes(),
        "gpus": gpus,
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of every installed package that numbers can depend on; absent packages are left out."""
    found = {"python": platform.python_version()}
    for package in ("mtl", *PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    # The distribution's version hides which build it is; torch itself says (2.13.0+cpu).
    found["torch"] = str(torch.__version__)
    return found


def git_commit(path: Path) -> str | None:
    """The commit checked out at ``path``, with ``-modified`` where tracked files differ; None outside a repository."""
    commit = _git(path, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(path, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-modified" if changes else commit


def _git(path: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(path), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip()


def _processor_name() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or None)


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
