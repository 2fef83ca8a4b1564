"""Files that are either wholly there or as they were before, whatever happens while they are written.

A file is written under a temporary name in the same directory, flushed to the disk, and renamed over its target. A
reader never sees half a file; a crash leaves the old content and at most a temporary file, whose name starts with a
dot.
"""

import os
import secrets
from pathlib import Path


def write_text_atomically(path: Path, text: str) -> None:
    """Replace the content of ``path`` by ``text`` in UTF-8, line ends as given, or leave it untouched."""
    write_bytes_atomically(path, text.encode("utf-8"))


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Replace the content of ``path`` by ``content``, or leave it untouched; the directory must exist.

    On return the content is on the disk, not only in the operating system's memory. Raises ``OSError`` as the
    operating system reports it (a full disk, missing permission), the temporary file removed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        # Opened by name and mode, not by tempfile: its 0600 would hide results from the rest of a group.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Return once the content of ``path`` is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Return once the names in the directory ``path`` are on the disk: without it a crash may undo a rename."""
    sync_file(path)
