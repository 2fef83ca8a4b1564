"""`mtl predict`: write a run's predictions for any split, labelled or not."""

import argparse
from typing import get_args

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.config.run import Stage


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's directory")
    parser.add_argument("--stage", choices=get_args(Stage), default="joint", help="whose weights; joint by default")
    parser.add_argument(
        "--task", action="append", default=[], metavar="T", help="only this task or suite; may be repeated"
    )
    parser.add_argument("--split", default="test", help="the split; test by default, which for MNLI means both")
    parser.add_argument("--out", metavar="DIR", help="write below DIR instead of into the run's own directory")
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), help="of the forward pass; as in training by default; needs --out"
    )
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    files = api.predict(
        arguments.run,
        stage=arguments.stage,
        tasks=arguments.task,
        split=arguments.split,
        out=arguments.out,
        precision=arguments.precision,
    )
    print(*(path for splits in files.values() for path in splits.values()), sep="\n")
    return 0


VERB = Verb(
    "predict",
    "write the predictions of a run's models as Parquet files",
    "mtl predict runs/glue --task glue/rte --split test --out predictions",
    _declare,
    _act,
)
