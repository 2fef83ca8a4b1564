"""Optional parts, told from the package's own metadata."""

from importlib import metadata

import pytest

from mtl.stages.extras import Extra, installed_extras

REQUIREMENTS = [
    "numpy>=2.0",
    'matplotlib>=3.9; extra == "plot"',
    "no-such_package.here[more]>=1; python_version > '3' and extra == 'odd'",
    'numpy; extra == "odd"',
    'pytest; extra == "dev"',
]


def test_extras_and_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: REQUIREMENTS)
    assert installed_extras() == [
        Extra("plot", ("matplotlib",), ()),
        Extra("odd", ("no-such_package.here", "numpy"), ("no-such_package.here",)),
    ]


def test_a_package_that_is_not_installed_has_none() -> None:
    assert installed_extras("no-such-package-at-all") == []


def test_ours_are_found() -> None:
    assert {"plot", "slurm", "minilm"} <= {extra.name for extra in installed_extras()}
