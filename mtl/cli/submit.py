"""`mtl submit`: a leaderboard's files from a run, or the check of a zip that anyone made."""

import argparse
import sys
from pathlib import Path
from typing import get_args

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.config.run import Stage
from mtl.errors import ConfigError, DataError


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's directory")
    parser.add_argument("--benchmark", choices=("glue",), default="glue", help="whose leaderboard; glue by default")
    parser.add_argument("--stage", choices=get_args(Stage), default="joint", help="whose weights; joint by default")
    parser.add_argument("--out", metavar="FILE", help="the zip to write")
    parser.add_argument(
        "--fill-missing", action="store_true", help="put one constant into files that cannot be predicted"
    )
    parser.add_argument("--check", metavar="FILE", help="write nothing; say what is wrong with this zip")
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    if arguments.check is not None:
        if arguments.run is not None or arguments.out is not None or arguments.fill_missing:
            raise ConfigError("--check looks at one zip: leave out RUN, --out and --fill-missing")
        return _check(Path(arguments.check), arguments)
    if arguments.run is None or arguments.out is None:
        raise ConfigError("name a run and --out FILE to write a submission, or --check FILE to look at one")
    written = api.submit(
        arguments.run,
        arguments.out,
        benchmark=arguments.benchmark,
        stage=arguments.stage,
        fill_missing=arguments.fill_missing,
    )
    print(f"{written.path}: {len(written.predicted)} files of predictions ({', '.join(written.predicted)})")
    if written.filled:
        names = ", ".join(written.filled)
        print(f"NOT predictions, one constant each: {names}. Their scores mean nothing.", file=sys.stderr)
    return 0


def _check(path: Path, arguments: argparse.Namespace) -> int:
    faults = api.check_submission(path, benchmark=arguments.benchmark)
    if faults:
        listed = "\n".join(f"  {fault}" for fault in faults)
        raise DataError(f"{path} would not be taken by {arguments.benchmark}:\n{listed}")
    print(f"{path}: every file is there, and every row as {arguments.benchmark} wants it")
    return 0


VERB = Verb(
    "submit",
    "write the files for a leaderboard, or check a zip of them",
    "mtl submit runs/glue --benchmark glue --out glue.zip",
    _declare,
    _act,
)
