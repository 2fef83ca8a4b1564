"""Objects from before are left alone within, and are garbage like any other afterwards."""

import gc
import weakref

import pytest

from mtl.runtime.garbage import older_objects_left_alone


class Ring:
    """Garbage that only a collection finds: it refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_older_garbage_waits_and_newer_is_collected() -> None:
    older = weakref.ref(Ring())
    with older_objects_left_alone():
        newer = weakref.ref(Ring())
        gc.collect()
        assert older() is not None
        assert newer() is None
    gc.collect()
    assert older() is None
    assert gc.get_freeze_count() == 0


def test_an_error_ends_it_too() -> None:
    with pytest.raises(ValueError, match="stop"), older_objects_left_alone():
        raise ValueError("stop")
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_frozen_stays_so() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with older_objects_left_alone():
            pass
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()
