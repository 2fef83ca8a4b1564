"""`mtl export`: one task of a run as a directory for plain transformers."""

import argparse
from typing import get_args

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.config.run import Stage


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's directory")
    parser.add_argument("directory", metavar="DIR", help="the new directory to write")
    parser.add_argument("--task", required=True, metavar="T", help="the task whose head goes with the encoder")
    parser.add_argument("--stage", choices=get_args(Stage), default="joint", help="whose weights; joint by default")
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    print(api.export(arguments.run, arguments.directory, task=arguments.task, stage=arguments.stage))
    return 0


VERB = Verb(
    "export",
    "write one task of a run as a plain Hugging Face model",
    "mtl export runs/glue --task glue/rte exported/rte",
    _declare,
    _act,
)
