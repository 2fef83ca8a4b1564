"""Keeping freed memory is set in the process, said in words, and can be left alone."""

import subprocess
import sys

from mtl.runtime.allocator import set_allocator

# The size of the heap's top once 64 MiB came and went tells whether they were kept.
_PROGRAM = """
import resource, sys, ctypes
from mtl.runtime.allocator import set_allocator
print(set_allocator(sys.argv[1]))
def touch():
    block = bytearray(64 * 2**20)
    for place in range(0, len(block), 4096):
        block[place] = 1
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(wanted: str) -> tuple[str, int]:
    """What was said, and how many pages the second use of the same size had to fetch."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, wanted], capture_output=True, text=True, check=True)
    said, faults = done.stdout.splitlines()
    return said, int(faults)


def test_freed_memory_is_used_again_without_new_pages() -> None:
    said, kept = run("keep")
    assert "kept" in said
    assert "training.allocator" in said
    said, fetched = run("system")
    assert "as the C library sees fit" in said
    assert kept < 100 < 10_000 < fetched


def test_leaving_it_alone_changes_nothing_here() -> None:
    assert "goes back" in set_allocator("system")
