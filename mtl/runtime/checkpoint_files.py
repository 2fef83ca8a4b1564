"""Checkpoints as files: each is wholly there and verified, or not there at all. Knows nothing of training.

A checkpoint is a directory of safetensors, JSON and whatever plain files its writer adds, with a manifest. It is built
under a hidden name beside its place and renamed into it, so a crash, a full disk or a kill at any moment leaves the
earlier checkpoints as they were. Nothing is ever unpickled.
"""

import errno
import json
import logging
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import torch
from pydantic import JsonValue
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from mtl.atomic import sync_directory, sync_file
from mtl.errors import DataError, MtlError, NonFiniteError
from mtl.runtime.manifest import verify_manifest, write_manifest
from mtl.runtime.processes import is_running, process_start

_logger = logging.getLogger("mtl")

# Kept free beyond the tensors: for the tokenizer, the logs, and file system overhead.
_SPARE_BYTES = 16 * 2**20

_STEP = re.compile(r"step-([0-9]{8,})")
_HIDDEN = re.compile(r"\.(?P<name>.+)\.(?P<pid>[0-9]+)\.(?P<start>[0-9]+)\.(?P<kind>new|old|gone)")


def step_directory(parent: Path, step: int) -> Path:
    """Where the checkpoint of update ``step`` belongs: ``step-00001000``."""
    return parent / f"step-{step:08d}"


def save_checkpoint(
    directory: Path,
    *,
    tensors: Mapping[str, Mapping[str, torch.Tensor]],
    documents: Mapping[str, JsonValue],
    files: Callable[[Path], None] | None = None,
) -> None:
    """Write a checkpoint at ``directory``, replacing one that is there; on any error that one stays.

    ``tensors[name]`` becomes ``name.safetensors``, ``documents[name]`` becomes ``name.json``; ``files`` is called with
    the directory being built and may add plain files. On return everything is on the disk. Tensors that share memory
    are stored separately, each in full. The same content gives the same bytes.

    Raises ``NonFiniteError`` naming a tensor of ``tensors["model"]``, or a place in a document, that is NaN or infinite
    (a score not yet known is null), and ``MtlError`` where the disk is full.
    """
    _refuse_non_finite_tensors(tensors.get("model", {}))
    texts = {name: _to_json(name, document) for name, document in documents.items()}
    directory.parent.mkdir(parents=True, exist_ok=True)
    _require_space(directory, tensors, texts)
    building = _hidden_name(directory, "new")
    try:
        building.mkdir()
        _write_files(building, tensors, texts)
        if files is not None:
            files(building)
        _sync_below(building)
        write_manifest(building)
        _move_into_place(building, directory)
    except (OSError, SafetensorError) as error:
        if _is_disk_full(error):
            raise MtlError(
                f"the disk is full: {directory} could not be saved, earlier checkpoints are untouched. "
                "Free some space and continue with --resume"
            ) from error
        raise
    finally:
        if building.exists():
            shutil.rmtree(building)


def verify_checkpoint(directory: Path) -> None:
    """Return if ``directory`` holds exactly what was saved; raises ``DataError`` naming the file that does not."""
    verify_manifest(directory)


def load_tensors(directory: Path, name: str) -> dict[str, torch.Tensor]:
    """The tensors saved as ``name``, on the CPU; raises ``DataError`` where the file is missing or unreadable."""
    path = directory / f"{name}.safetensors"
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} cannot be read ({error}): use another checkpoint") from error


def load_document(directory: Path, name: str) -> JsonValue:
    """The document saved as ``name``; raises ``DataError`` where the file is missing or unreadable."""
    path = directory / f"{name}.json"
    try:
        document: JsonValue = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): use another checkpoint") from error
    return document


def newest_valid_checkpoint(parent: Path) -> Path | None:
    """The checkpoint of the highest step that verifies; each newer one that does not is logged with the reason."""
    for directory in reversed(_step_directories(parent)):
        try:
            verify_checkpoint(directory)
        except DataError as error:
            _logger.warning("skipping checkpoint %s: %s", directory.name, error)
        else:
            return directory
    return None


def keep_newest(parent: Path, count: int) -> None:
    """Delete all step checkpoints but the ``count`` newest; ``best`` and ``last`` are never touched.

    Raises ``DataError``, with nothing deleted, where the newest one does not verify.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    directories = _step_directories(parent)
    if len(directories) <= count:
        return
    verify_checkpoint(directories[-1])
    for directory in directories[:-count]:
        _remove(directory)


def remove_steps(parent: Path) -> None:
    """Delete all step checkpoints: for a training that is finished, whose ``last`` and ``best`` stay."""
    for directory in _step_directories(parent):
        _remove(directory)


def remove_leftovers(parent: Path) -> None:
    """Clean up after processes that died while saving in ``parent``: call it before resuming, under the run's lock.

    Unfinished checkpoints are deleted. One that was moved aside, its replacement not yet in its place, is moved back.
    """
    for path in sorted(parent.glob(".*")):
        match = _HIDDEN.fullmatch(path.name)
        if match is None or is_running(int(match["pid"]), int(match["start"]) or None):
            continue
        place = parent / match["name"]
        if match["kind"] == "old" and not place.exists():
            os.rename(path, place)
            _logger.warning("restored checkpoint %s: replacing it was interrupted", place)
        else:
            shutil.rmtree(path)


def _remove(directory: Path) -> None:
    # Renamed first, so that a half-deleted checkpoint is never found under its own name.
    doomed = _hidden_name(directory, "gone")
    os.rename(directory, doomed)
    shutil.rmtree(doomed)


def _step_directories(parent: Path) -> list[Path]:
    found = [(match, path) for path in parent.glob("step-*") if (match := _STEP.fullmatch(path.name))]
    return [path for _, path in sorted(found, key=lambda pair: int(pair[0][1]))]


def _hidden_name(directory: Path, kind: Literal["new", "old", "gone"]) -> Path:
    """A name beside ``directory`` that says which process uses it, so that leftovers of dead ones can be told."""
    start = process_start(os.getpid()) or 0
    return directory.with_name(f".{directory.name}.{os.getpid()}.{start}.{kind}")


def _write_files(building: Path, tensors: Mapping[str, Mapping[str, torch.Tensor]], texts: Mapping[str, str]) -> None:
    for name, group in tensors.items():
        path = building / f"{name}.safetensors"
        # "pt" is what transformers looks for before it opens a file.
        save_file(_separate(group), path, metadata={"format": "pt"})
        # safetensors makes its files private; a run's other files follow the umask, as the directory does.
        path.chmod(building.stat().st_mode & 0o666)
    for name, text in texts.items():
        (building / f"{name}.json").write_text(text, encoding="utf-8")


def _separate(group: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors on the CPU, contiguous, none sharing memory with another (the format refuses that)."""
    separate: dict[str, torch.Tensor] = {}
    storages: set[int] = set()
    for name, tensor in group.items():
        plain = tensor.detach().cpu().contiguous()
        if plain.untyped_storage().data_ptr() in storages:
            plain = plain.clone()
        storages.add(plain.untyped_storage().data_ptr())
        separate[name] = plain
    return separate


def _sync_below(directory: Path) -> None:
    for path in sorted(directory.rglob("*")):
        if not path.is_symlink():
            sync_file(path)


def _move_into_place(building: Path, directory: Path) -> None:
    aside = _hidden_name(directory, "old")
    if directory.exists():
        os.rename(directory, aside)
    try:
        os.rename(building, directory)
    except OSError:
        if aside.exists():
            os.rename(aside, directory)
        raise
    sync_directory(directory.parent)
    if aside.exists():
        shutil.rmtree(aside)


def _require_space(
    directory: Path, tensors: Mapping[str, Mapping[str, torch.Tensor]], texts: Mapping[str, str]
) -> None:
    needed = sum(tensor.nbytes for group in tensors.values() for tensor in group.values())
    needed += sum(len(text) for text in texts.values()) + _SPARE_BYTES
    free = shutil.disk_usage(directory.parent).free
    if free < needed:
        raise MtlError(
            f"the disk is full: {directory} needs {needed / 2**20:.0f} MiB and {free / 2**20:.0f} MiB are free; "
            "earlier checkpoints are untouched. Free some space and continue with --resume"
        )


def _is_disk_full(error: OSError | SafetensorError) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    # safetensors passes the operating system's error on as text only.
    return any(f"os error {number}" in str(error) for number in (errno.ENOSPC, errno.EDQUOT))


def _refuse_non_finite_tensors(group: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in group.items():
        if not torch.isfinite(tensor).all():
            raise NonFiniteError(f"the weights {name!r} are not finite, so no checkpoint is saved: use an earlier one")


def _to_json(name: str, document: JsonValue) -> str:
    place = _non_finite_place(document, name)
    if place is not None:
        raise NonFiniteError(f"{place} is not finite, so no checkpoint is saved: JSON has no such number, use null")
    return json.dumps(document, sort_keys=True, allow_nan=False, indent=1) + "\n"


def _non_finite_place(value: JsonValue, place: str) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _non_finite_place(item, f"{place}.{key}"))), None)
