"""`mtl report`: a study on one page."""

import argparse
from pathlib import Path

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="the directory that mtl study was given as --out")
    parser.add_argument("--out", metavar="FILE", type=Path, help="the page (report.html in the study's directory)")
    parser.add_argument(
        "--allow-different",
        action="append",
        default=[],
        choices=("data", "selection"),
        help="compare arms although they differ in this; may be repeated, and is said on the page",
    )
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    print(api.report(arguments.study, arguments.out, allow_different=arguments.allow_different))
    return 0


VERB = Verb(
    "report",
    "tell a study on one HTML page that needs nothing else: answer, tables, pictures, costs, caveats",
    "mtl report runs/mini_sampling --out mini_sampling.html",
    _declare,
    _act,
)
