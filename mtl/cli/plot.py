"""`mtl plot`: pictures of a study, with their numbers."""

import argparse

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.cli.table import declare_comparison, named_primary
from mtl.studies.pictures import PICTURES


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("picture", choices=PICTURES, help="; ".join(f"{name}: {PICTURES[name]}" for name in PICTURES))
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, result files, or directories of runs")
    declare_comparison(parser, baseline_required=False)
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder for SVG, PDF, PNG and CSV")
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    drawn = api.plot(
        arguments.picture,
        arguments.runs,
        arguments.out,
        baseline=arguments.baseline,
        primary=named_primary(arguments.primary),
        allow_different=arguments.allow_different,
    )
    for path in drawn.files:
        print(path)
    print(drawn.drawing.caption)
    for line in drawn.drawing.missing:
        print(f"missing: {line}")
    return 0


VERB = Verb(
    "plot",
    "draw a study: SVG, PDF and PNG in two widths, with the numbers as CSV",
    "mtl plot forest runs --baseline single --out pictures",
    _declare,
    _act,
)
