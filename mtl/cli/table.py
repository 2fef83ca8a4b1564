"""`mtl table`: the scores of runs side by side, and arms tested against a baseline."""

import argparse

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.errors import ConfigError
from mtl.studies.layout import LAYOUTS


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, result files, or directories of runs")
    parser.add_argument(
        "--format", choices=LAYOUTS, default="text", help="text (default), md: Markdown, tex: LaTeX, csv"
    )
    parser.add_argument(
        "--baseline", metavar="ARM", help="test all other arms against this one: an arm, a stage, or ARM:STAGE"
    )
    parser.add_argument(
        "--primary",
        metavar="ARM=SCORE",
        help="the one comparison named before the runs, by a task or suite; tested alone, without correction",
    )
    parser.add_argument(
        "--allow-different",
        action="append",
        default=[],
        choices=("data", "selection"),
        help="compare arms although they differ in this; may be repeated, and is said under the table",
    )
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    shown = api.table(
        arguments.runs,
        layout=arguments.format,
        baseline=arguments.baseline,
        primary=None if arguments.primary is None else _named(arguments.primary),
        allow_different=arguments.allow_different,
    )
    print(shown, end="")
    return 0


def _named(text: str) -> tuple[str, str]:
    arm, equals, score = text.rpartition("=")
    if not (arm and equals and score):
        raise ConfigError(f"--primary is an arm and what it is compared by, such as joint=glue; not {text!r}")
    return arm, score


VERB = Verb(
    "table",
    "print the scores of runs, seeds of one arm taken together, and test arms against a baseline",
    "mtl table runs --baseline single --format md",
    _declare,
    _act,
)
