"""Whether a zip is what a leaderboard takes, and if not, what is wrong where. Nothing is unpacked to the disk."""

import math
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mtl.errors import DataError
from mtl.evaluation.benchmarks import Benchmark, SubmissionFile

_LARGEST = 64 * 2**20
"""Bytes that a file may have unpacked: ten times what the largest honest one has."""
_MOST_ENTRIES = 200
_ENCRYPTED = 1


def zip_faults(benchmark: Benchmark, path: Path) -> list[str]:
    """Every fault of the zip at ``path``, each naming file and row where there is one; none where it can be sent.

    DataError where there is no readable file at all.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            faults = _entry_faults(benchmark, entries)
            if faults:
                return faults
            by_name = {file.name: file for file in benchmark.files}
            return [fault for entry in entries for fault in _content_faults(benchmark, by_name, archive, entry)]
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{path}: {error.strerror}; name the zip to check") from error
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, OSError) as error:
        # All of these are how zipfile answers bytes that mean nothing.
        return [f"{path.name} is no whole zip file ({error})"]


def file_faults(benchmark: Benchmark, file: SubmissionFile, content: bytes) -> list[str]:
    """What is wrong with the content of one file; the first fault of its kind, since others follow from it."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"{file.name}: not UTF-8 at byte {error.start}"]
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    header = "\t".join(benchmark.columns)
    if lines[0] != header:
        return [f"{file.name}: the first line is {lines[0][:60]!r}, not {header!r}"]
    rows = lines[1:]
    if len(rows) != file.rows:
        return [f"{file.name}: {len(rows)} rows of predictions, the test file has {file.rows}"]
    for number, row in enumerate(rows):
        fault = _row_fault(file, number, row.split("\t"))
        if fault is not None:
            return [f"{file.name}, line {number + 2}: {fault}"]
    return []


def _row_fault(file: SubmissionFile, number: int, cells: Sequence[str]) -> str | None:
    if len(cells) != 2:
        return f"{len(cells)} columns, not 2"
    index, value = cells
    if index != str(number):
        return f"index {index[:20]!r} where {number} has to stand: every row of the test file, in its order, from 0"
    if file.score_range is None:
        if value in file.spellings.values():
            return None
        return f"{value[:40]!r} is none of {', '.join(sorted(set(file.spellings.values())))}"
    low, high = file.score_range
    try:
        score = float(value)
    except ValueError:
        return f"{value[:40]!r} is no number"
    if not (math.isfinite(score) and low <= score <= high):
        return f"{value[:40]} is not within {low:g} to {high:g}"
    return None


def _entry_faults(benchmark: Benchmark, entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """What is wrong with names, links and sizes; contents are only read where this finds nothing."""
    if len(entries) > _MOST_ENTRIES:
        return [f"{len(entries)} entries, the benchmark has {len(benchmark.files)} files"]
    names = [entry.filename for entry in entries]
    wanted = [file.name for file in benchmark.files]
    faults = [fault for entry in entries if (fault := _entry_fault(entry)) is not None]
    flat = [name for name in names if not _in_folder(name)]
    faults += [f"{name} stands {times} times in the zip" for name, times in Counter(names).items() if times > 1]
    faults += [_stranger(name, wanted) for name in dict.fromkeys(flat) if name not in wanted]
    return faults + [f"{name} is missing" for name in wanted if name not in names]


def _entry_fault(entry: zipfile.ZipInfo) -> str | None:
    if _in_folder(entry.filename):
        return f"{entry.filename[:80]!r} is not at the top of the zip: pack the files without a folder"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return f"{entry.filename} is a link, not a file"
    if entry.flag_bits & _ENCRYPTED:
        return f"{entry.filename} is encrypted"
    if entry.file_size > _LARGEST:
        return f"{entry.filename} would be {entry.file_size:,} bytes long, {_LARGEST:,} at most"
    return None


def _in_folder(name: str) -> bool:
    return "/" in name or "\\" in name


def _stranger(name: str, wanted: Sequence[str]) -> str:
    meant = [other for other in wanted if other.lower() == name.lower()]
    return f"{name[:80]} is no file of the benchmark" + (f"; {meant[0]} is, spelt so" if meant else "")


def _content_faults(
    benchmark: Benchmark, files: dict[str, SubmissionFile], archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> list[str]:
    try:
        with archive.open(entry) as stream:
            # The size that an entry declares may be a lie.
            content = stream.read(_LARGEST + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        return [f"{entry.filename} cannot be unpacked ({error})"]
    if len(content) > _LARGEST:
        return [f"{entry.filename} is longer than {_LARGEST:,} bytes"]
    return file_faults(benchmark, files[entry.filename], content)
