"""This project's own kernels for CPUs, in C: compiled by the machine's gcc when first asked for, and kept.

torch's own operations stay the reference beside each of them, and do the work wherever there is no compiler.
"""

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

# Loaded before the kernels, which use the threads that come with it.
import torch  # noqa: F401

from mtl.config.locations import kernel_directory
from mtl.errors import ConfigError, MtlError

logger = logging.getLogger("mtl")

KernelChoice = Literal["auto", "compiled", "torch"]

_HERE = Path(__file__).parent
_SOURCES = ("adamw.c", "attention.c", "residual_norm.c", "square_sum.c")
_HEADERS = ("products.h", "vectors.h")
_FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-fPIC", "-fopenmp")
_LIBRARIES = ("-lm",)
_HASH_BYTES = hashlib.sha256().digest_size
_loaded: ctypes.CDLL | None = None


def choose_kernels(wanted: KernelChoice, directory: Path | None = None) -> str:
    """Make this process use compiled kernels on its CPU, or torch's operations; a sentence saying which and why.

    ``auto`` takes compiled ones where they can be had. ConfigError where ``compiled`` is asked for in vain. Compiling
    takes seconds, once for a processor and compiler; what comes of it is kept in ``directory``, by default one of the
    user's cache.
    """
    global _loaded
    _loaded = None
    if wanted == "torch":
        return "no compiled kernels, as was asked for: torch's operations do their work"
    try:
        _loaded, said = _load(directory or _user_directory())
    except _UnavailableError as error:
        if wanted == "compiled":
            raise ConfigError(f"training.kernels=compiled: {error}; set it to auto or torch") from error
        return f"no compiled kernels, torch's operations do their work: {error}"
    return said


def compiled_kernels() -> ctypes.CDLL | None:
    """The kernels that :func:`choose_kernels` loaded; None where torch's operations do their work."""
    return _loaded


class _UnavailableError(MtlError):
    """Why there are no compiled kernels here."""


def _load(directory: Path) -> tuple[ctypes.CDLL, str]:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise _UnavailableError("there is no gcc here")
    path = directory / f"{_fingerprint(compiler)}.so"
    try:
        return _opened(path), "compiled kernels"
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("the kernels in %s cannot be loaded (%s) and are compiled anew", path, error)
    began = time.perf_counter()
    _compile(compiler, path)
    try:
        library = _opened(path)
    except OSError as error:
        raise _UnavailableError(f"{path} cannot be loaded ({error})") from error
    return library, f"kernels compiled within {time.perf_counter() - began:.1f} s and kept in {directory}"


def _opened(path: Path) -> ctypes.CDLL:
    # What is loaded is mapped: a file cut short would end the process by a signal. Its own hash stands at its end.
    content = path.read_bytes()
    if hashlib.sha256(content[:-_HASH_BYTES]).digest() != content[-_HASH_BYTES:]:
        raise OSError("it is not whole")
    # All symbols now: one that is missing would otherwise end the process in the middle of an update.
    return ctypes.CDLL(str(path.absolute()), mode=os.RTLD_NOW)


def _user_directory() -> Path:
    try:
        return kernel_directory()
    except RuntimeError as error:
        raise _UnavailableError(f"there is no place to keep them ({error}); set MTL_CACHE_DIR") from error


def _fingerprint(compiler: str) -> str:
    """Of all that the result depends on: a home directory may be shared by machines of several kinds."""
    digest = hashlib.sha256(repr((_FLAGS, _LIBRARIES)).encode())
    for name in (*_SOURCES, *_HEADERS):
        digest.update((_HERE / name).read_bytes())
    digest.update(_run([compiler, "--version"]).encode())
    digest.update(_processor_features().encode())
    return digest.hexdigest()[:16]


def _processor_features() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise _UnavailableError(f"what this processor can do is not known ({error})") from error
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _compile(compiler: str, path: Path) -> None:
    """Compile aside and rename: other processes see all of the file or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as aside:
            objects = []
            for name in _SOURCES:
                objects.append(str(Path(aside, name).with_suffix(".o")))
                _run([compiler, *_FLAGS, "-c", str(_HERE / name), "-o", objects[-1]])
            # Not linked with OpenMP: torch has loaded one already, and threads of a second would fight for the cores.
            linked = Path(aside, path.name)
            _run([compiler, "-shared", *objects, *_LIBRARIES, "-o", str(linked)])
            with linked.open("r+b") as file:
                file.write(hashlib.sha256(file.read()).digest())
                file.flush()
                os.fsync(file.fileno())
            linked.replace(path)
    except OSError as error:
        raise _UnavailableError(f"they cannot be written to {path.parent} ({error})") from error


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise _UnavailableError(f"{command[0]} cannot be run ({error})") from error
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise _UnavailableError(f"{command[0]} refuses the kernels ({first or f'exit status {done.returncode}'})")
    return done.stdout
