"""Text that names a file, directory or model: what no system can open is refused where it is written down."""

import os
from typing import Annotated

from pydantic import AfterValidator

LONGEST_NAME = 255
LONGEST_PATH = 4096


def _possible(path: str) -> str:
    if not path:
        raise ValueError("is empty; name a path, or leave the key out")
    if "\0" in path:
        raise ValueError("holds a NUL character, which no path has; take it out")
    if len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in path.split("/")):
        raise ValueError(
            f"too long: a path has at most {LONGEST_NAME} bytes between slashes and {LONGEST_PATH} in all; shorten it"
        )
    if path.startswith("~") and os.path.expanduser(path) == path:
        raise ValueError(f"{path.partition('/')[0]} is the home of nobody known here; write the path out")
    return path


PathText = Annotated[str, AfterValidator(_possible)]
OutputPath = Annotated[str, AfterValidator(_possible), AfterValidator(os.path.expanduser)]
"""A path whose ``~`` is written out at once, since libraries that are given it would not all do that."""
