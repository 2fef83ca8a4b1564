"""`mtl run`: train, evaluate, write the run directory, print its table."""

import argparse

from mtl import api
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.runtime.torchrun import this_rank


def _declare(parser: argparse.ArgumentParser) -> None:
    declare_settings(parser)
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--resume", action="store_true", help="continue the run in out=")
    existing.add_argument("--overwrite", action="store_true", help="delete the run in out= and start anew")


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    config = api.load_config(*split_settings(arguments.settings))
    result = api.run(config, resume=arguments.resume, overwrite=arguments.overwrite, plugins=arguments.plugin)
    if this_rank() == 0:
        print(api.table(config.out), end="")
    return 0 if result.status == "complete" else 1


VERB = Verb(
    "run",
    "train as the stages of the config say, evaluate every task, write the run directory",
    "mtl run glue_minilm training.epochs=1 out=runs/first",
    _declare,
    _act,
)
