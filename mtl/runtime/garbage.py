"""Python's garbage collector while updates run: what was there before them is left alone."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def older_objects_left_alone() -> Iterator[None]:
    """Within it no collection looks at objects that existed before; afterwards all are looked at again.

    Imported libraries hold several hundred thousand, and going through all of these takes as long as an update. Where
    somebody has frozen objects already, nothing is changed.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
