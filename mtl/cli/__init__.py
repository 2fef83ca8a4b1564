"""The command `mtl`: one file for each verb, each a thin shell around a function of `mtl.api`."""

from mtl.cli.entry import main

__all__ = ["main"]
