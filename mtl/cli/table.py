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
    declare_comparison(parser, baseline_required=False)
    declare_plugins(parser)


def declare_comparison(parser: argparse.ArgumentParser, *, baseline_required: bool) -> None:
    """The arguments that say what is compared with what."""
    parser.add_argument(
        "--baseline",
        required=baseline_required,
        metavar="ARM",
        help="test all other arms against this one: an arm, a stage, or ARM:STAGE",
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


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    shown = api.table(
        arguments.runs,
        layout=arguments.format,
        baseline=arguments.baseline,
        primary=named_primary(arguments.primary),
        allow_different=arguments.allow_different,
    )
    print(shown, end="")
    return 0


def named_primary(text: str | None) -> tuple[str, str] | None:
    """The arm and the score that ``--primary`` names, if it was given."""
    if text is None:
        return None
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
