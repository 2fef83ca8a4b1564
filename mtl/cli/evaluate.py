"""`mtl eval`: score a run's models again, on any split with labels."""

import argparse
from typing import get_args

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.config.run import Stage
from mtl.studies.columns import aligned


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's directory")
    parser.add_argument("--stage", choices=get_args(Stage), default="joint", help="whose weights; joint by default")
    parser.add_argument(
        "--task", action="append", default=[], metavar="T", help="only this task or suite; may be repeated"
    )
    parser.add_argument("--split", default=None, help="the split to score; by default those the task is scored on")
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    scores = api.evaluate(arguments.run, stage=arguments.stage, tasks=arguments.task, split=arguments.split)
    header = ("task", "split", "rows", "metric", "score")
    rows = [
        (task, split, f"{record.rows:,}", metric, f"{value:.4f}")
        for task, splits in scores.items()
        for split, record in splits.items()
        for metric, value in record.metrics.items()
    ]
    print(*aligned(header, rows, left=(0, 1, 3)), sep="\n")
    return 0


VERB = Verb(
    "eval",
    "score the models of a run on a split",
    "mtl eval runs/glue --stage joint --task glue/rte --split dev",
    _declare,
    _act,
)
