"""`mtl compare`: two runs side by side, with a paired test and the examples on which they part."""

import argparse
import dataclasses
import json
from typing import get_args

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.cli.compare_text import comparison_text
from mtl.config.run import Stage


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="RUN_A", help="a run's directory")
    parser.add_argument("second", metavar="RUN_B", help="another's, or the same with --second-stage")
    parser.add_argument("--stage", choices=get_args(Stage), help="which stage; joint where both have it")
    parser.add_argument("--second-stage", choices=get_args(Stage), help="RUN_B's stage, where it is to be another")
    parser.add_argument(
        "--task", action="append", default=[], metavar="T", help="only this task or suite; may be repeated"
    )
    parser.add_argument("--split", default=None, help="one split; by default those the task is scored on")
    parser.add_argument(
        "--flips", type=_count, default=5, metavar="N", help="show at most N examples each way (5); 0 for none"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with numbers unrounded")
    declare_plugins(parser)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of examples, 0 or more")
    return int(text)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    comparison = api.compare(
        arguments.first,
        arguments.second,
        stage=arguments.stage,
        second_stage=arguments.second_stage,
        tasks=arguments.task,
        split=arguments.split,
        flips=arguments.flips,
    )
    if arguments.json:
        print(json.dumps(dataclasses.asdict(comparison), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(comparison_text(comparison), end="")
    return 0


VERB = Verb(
    "compare",
    "compare two runs: settings, scores, a paired test, and examples whose prediction flipped",
    "mtl compare runs/t1 runs/t5 --task glue/rte --flips 10",
    _declare,
    _act,
)
