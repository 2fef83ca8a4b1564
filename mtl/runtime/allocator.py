"""How the C library hands memory back: kept by default, because large tensors are freed and asked for again all day.

By default glibc gives every large block back to the system when it is freed, and the next tensor of that size pays for
fresh pages, which cost more than many an operation on it.
"""

import ctypes
import sys
from typing import Literal

Allocator = Literal["keep", "system"]

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = -1
# More than a tensor of most updates, and the most that older versions of glibc take. Larger blocks, as those of an
# evaluation, are given back: of ever changing sizes, they would leave holes that none of them fits.
_LARGEST_KEPT = 2**25


def set_allocator(wanted: Allocator) -> str:
    """Make this process keep freed memory for its next tensors, or leave the C library as it is; a sentence saying so.

    It holds for the whole process from here on. Where the C library is not glibc, nothing is changed.
    """
    if wanted == "system":
        return "freed memory goes back to the system as the C library sees fit"
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return "the C library has no way to keep freed memory; it is left as it is"
    if not (mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT) and mallopt(_TRIM_THRESHOLD, _NEVER)):
        return "the C library refused to keep freed memory; it is left as it is"
    return "freed memory is kept for the next tensors (training.allocator=system changes that)"
