"""A directory that can prove it is whole: every file's size and SHA-256, written down last.

The formats of the files themselves carry no checksum, so a flipped bit in a weight would otherwise load in silence.
"""

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mtl.atomic import write_text_atomically
from mtl.errors import DataError

MANIFEST = "manifest.json"

# Loading such a file may run code that it carries. Nothing here reads one, and nobody should be led to.
_UNSAFE_SUFFIXES = {".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".npy", ".joblib", ".py"}


class FileEntry(BaseModel):
    """What one file must be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    bytes: int


class Manifest(BaseModel):
    """The content of ``manifest.json``: every other file of the directory by its path below it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: dict[str, FileEntry]


def write_manifest(directory: Path) -> None:
    """Describe every file now in ``directory``. Raises ``DataError`` for a link or a kind of file that is refused."""
    found = _files(directory)
    files = {name: FileEntry(sha256=_sha256(path), bytes=path.stat().st_size) for name, path in found.items()}
    write_text_atomically(directory / MANIFEST, Manifest(files=files).model_dump_json(indent=1) + "\n")


def verify_manifest(directory: Path) -> None:
    """Return if ``directory`` holds exactly the files of its manifest, byte for byte.

    Raises ``DataError`` naming the first file that is missing, unexpected, of a refused kind, of another size or
    of other content.
    """
    expected = _read(directory).files
    found = _files(directory)
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            raise DataError(f"{directory / name} is missing. {_REMEDY}")
        if name not in expected:
            raise DataError(f"{directory / name} is not in {MANIFEST}: remove it if you know where it comes from")
        size = found[name].stat().st_size
        if size != expected[name].bytes:
            raise DataError(f"{directory / name} has {size} bytes, not {expected[name].bytes}. {_REMEDY}")
    for name, path in found.items():
        if _sha256(path) != expected[name].sha256:
            raise DataError(f"{path} does not have the SHA-256 it was saved with. {_REMEDY}")


_REMEDY = "The directory is damaged: use another checkpoint, or copy it anew"


def _read(directory: Path) -> Manifest:
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing: {directory} is no checkpoint, or was never finished") from error
    except ValidationError as error:
        raise DataError(f"{path} is not a manifest: {error.errors()[0]['msg']}. {_REMEDY}") from error


def _files(directory: Path) -> dict[str, Path]:
    """Every file below ``directory`` but the manifest, by its path there, in sorted order."""
    found: dict[str, Path] = {}
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            raise DataError(f"{path} is a link; a checkpoint holds plain files only")
        if path.suffix.lower() in _UNSAFE_SUFFIXES:
            raise DataError(f"{path} is refused: loading a {path.suffix} file may run code. Remove it")
        if path.is_file() and path != directory / MANIFEST:
            found[path.relative_to(directory).as_posix()] = path
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
