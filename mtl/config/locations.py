"""Where files are: those that come with the package, the user's data, and what is kept between runs."""

import os
from pathlib import Path

from mtl.config.run import RunConfig
from mtl.errors import ConfigError


def configs_directory() -> Path:
    """The directory of the shipped recipes, which exists.

    A built package carries them inside itself as `mtl/recipes`; a checkout (also one installed with `pip install -e`)
    has them in `configs/` beside the package. Raises ConfigError where neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "recipes", package.parent / "configs")
    for candidate in candidates:
        if (candidate / "base.yaml").is_file():
            return candidate
    looked = " and ".join(str(candidate) for candidate in candidates)
    raise ConfigError(
        f"The shipped recipes are missing: no base.yaml in {looked}. Install the package again, or name config files "
        "by their path."
    )


def data_root(config: RunConfig) -> Path | None:
    """The directory that holds ``glue/``, ``clue/``, ...: ``data.root``, else ``MTL_DATA_DIR``, else None.

    Whether it exists is for the reader of a file in it to find, whose message can name the file.
    """
    chosen = config.data.root or os.environ.get("MTL_DATA_DIR")
    return Path(chosen).expanduser() if chosen else None


def cache_directory(config: RunConfig) -> Path:
    """Where tokenised rows are kept: ``data.cache``, else ``MTL_CACHE_DIR``, else ``~/.cache/mtl``; not created."""
    return Path(config.data.cache).expanduser() if config.data.cache else _user_cache()


def kernel_directory() -> Path:
    """Where kernels are kept that were compiled for this machine, whatever a run's data; not created."""
    return _user_cache() / "kernels"


def _user_cache() -> Path:
    chosen = os.environ.get("MTL_CACHE_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "mtl"
