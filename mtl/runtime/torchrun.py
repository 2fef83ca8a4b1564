"""What torchrun and the ranks it started tell each other: environment variables, and a file for the last error.

Light, so that the command line can ask without loading torch.
"""

import json
import os
import time
from pathlib import Path

from mtl.atomic import write_text_atomically
from mtl.errors import ConfigError, MtlError

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def is_launched() -> bool:
    """Whether torchrun, or a launcher like it, started this process."""
    return "WORLD_SIZE" in os.environ


def launched_ranks() -> int:
    """How many ranks there are, by ``WORLD_SIZE``; 1 without it.

    Raises ConfigError where there are several and a variable that they need to find each other is missing.
    """
    size = _number("WORLD_SIZE", 1)
    missing = [name for name in _NEEDED if name not in os.environ]
    if size > 1 and missing:
        raise ConfigError(
            f"WORLD_SIZE is {size}, but {', '.join(missing)} is not set: start the ranks with torchrun, or unset "
            "WORLD_SIZE"
        )
    return size


def this_rank() -> int:
    """This process's number among all ranks, by ``RANK``; 0 where it is alone, or where that cannot be read."""
    size, rank = (os.environ.get(name, "") for name in ("WORLD_SIZE", "RANK"))
    return int(rank) if size.isdecimal() and int(size) > 1 and rank.isdecimal() else 0


def local_rank() -> int:
    """This process's number on its machine, by ``LOCAL_RANK``: the GPU it uses."""
    return _number("LOCAL_RANK", 0)


def ranks_here() -> int:
    """How many of the ranks are on this machine, by ``LOCAL_WORLD_SIZE``; all of them without it."""
    return _number("LOCAL_WORLD_SIZE", launched_ranks())


def leave_error(error: MtlError) -> None:
    """Leave an error that ends this process where its launcher looks for it; nothing where no launcher asked for it."""
    place = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if place:
        # Torch reads message and timestamp; the exit code is for our own launcher.
        document = {"message": str(error), "timestamp": int(time.time()), "exit_code": error.exit_code}
        write_text_atomically(Path(place), json.dumps(document))


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal():
        raise ConfigError(f"the environment variable {name} is {text!r}, not a number: torchrun sets it, or unset it")
    return int(text)
