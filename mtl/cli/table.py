"""`mtl table`: the scores of runs side by side, and arms tested against a baseline."""

import argparse
from pathlib import Path

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins, split_settings
from mtl.errors import ConfigError
from mtl.studies.layout import LAYOUTS


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN | key=value",
        help="the directory of a study, which brings its own comparison; or run directories, result files, directories "
        "of runs. Then what is shown: rows=[glue/rte,glue] columns=[single,joint] names.glue/rte=RTE decimals=2 "
        "spread=deviation|interval|none transpose=true parts=[scores,differences,costs]",
    )
    parser.add_argument(
        "--format", choices=LAYOUTS, default="text", help="text (default), md: Markdown, tex: LaTeX, csv"
    )
    parser.add_argument("--layout", metavar="FILE", type=Path, help="a YAML file of such keys")
    declare_comparison(parser, baseline_required=False)
    declare_plugins(parser)


def declare_comparison(parser: argparse.ArgumentParser, *, baseline_required: bool) -> None:
    """The arguments that say what is compared with what."""
    parser.add_argument(
        "--baseline",
        required=baseline_required,
        metavar="ARM",
        help="test all other arms against this one: an arm, a stage, or ARM:STAGE; by default the study's own",
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
    from mtl.studies.table_layout import read_layout

    load_plugins(arguments.plugin)
    runs, keys = split_settings(arguments.runs)
    if not runs:
        raise ConfigError("name what the table is of: the directory of a study, or runs")
    shown = api.table(
        runs,
        layout=arguments.format,
        baseline=arguments.baseline,
        primary=named_primary(arguments.primary),
        allow_different=arguments.allow_different,
        shown=read_layout(arguments.layout, keys),
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
    "mtl table runs/mini_sampling --format md decimals=2",
    _declare,
    _act,
)
