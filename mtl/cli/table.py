"""`mtl table`: the scores of runs side by side."""

import argparse

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.studies.layout import LAYOUTS


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, result files, or directories of runs")
    parser.add_argument("--format", choices=LAYOUTS, default="text", help="text (default), md: Markdown, csv")
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    print(api.table(arguments.runs, layout=arguments.format), end="")
    return 0


VERB = Verb(
    "table",
    "print the scores of runs, seeds of one arm taken together",
    "mtl table runs/seed1 runs/seed2 --format md",
    _declare,
    _act,
)
