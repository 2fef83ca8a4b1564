"""The optional parts of the package, as its metadata names them, and which of their packages are installed."""

import re
from dataclasses import dataclass
from importlib import metadata

_REQUIREMENT = re.compile(r"(?P<package>[A-Za-z0-9._-]+).*;.*\bextra\s*==\s*[\"'](?P<extra>[A-Za-z0-9._-]+)[\"']")
# What only those need who change the package.
_LEFT_OUT = ("dev",)


@dataclass(frozen=True)
class Extra:
    """An optional part, the packages it needs, and those of them that are not installed."""

    name: str
    packages: tuple[str, ...]
    lacking: tuple[str, ...]


def installed_extras(distribution: str = "mtl") -> list[Extra]:
    """Every extra of ``distribution`` in the order of its metadata; none where it is not installed itself."""
    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    packages: dict[str, list[str]] = {}
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match is not None and match["extra"] not in _LEFT_OUT:
            packages.setdefault(match["extra"], []).append(match["package"])
    return [
        Extra(name, tuple(needed), tuple(package for package in needed if not _is_installed(package)))
        for name, needed in packages.items()
    ]


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
