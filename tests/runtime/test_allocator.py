"""Keeping freed memory is set in the process, said in words, and can be left alone."""

import subprocess
import sys

from mtl.runtime.allocator import set_allocator

# Pages fetched anew by the second of two blocks tell whether those of the first were kept.
_PROGRAM = """
import resource, sys, ctypes
from mtl.runtime.allocator import set_allocator
print(set_allocator(sys.argv[1]))
def touch():
    block = bytearray(int(sys.argv[2]) * 2**20)
    for place in range(0, len(block), 4096):
        block[place] = 1
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(wanted: str, mebibytes: int) -> tuple[str, int]:
    """What was said, and how many pages the second use of the same size had to fetch."""
    command = [sys.executable, "-c", _PROGRAM, wanted, str(mebibytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, faults = done.stdout.splitlines()
    return said, int(faults)


def test_freed_memory_is_used_again_without_new_pages() -> None:
    said, kept = run("keep", 31)
    assert "kept" in said
    assert "training.allocator" in said
    said, fetched = run("system", 64)
    assert "as the C library sees fit" in said
    assert kept < 100 < 10_000 < fetched


def test_the_largest_blocks_are_given_back() -> None:
    _, fetched = run("keep", 64)
    assert fetched > 10_000


def test_leaving_it_alone_changes_nothing_here() -> None:
    assert "goes back" in set_allocator("system")
