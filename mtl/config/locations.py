"""Where the files that come with the package are, in a checkout and in an installed package alike."""

from pathlib import Path

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
