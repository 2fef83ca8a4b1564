"""`mtl plan`: what a run would do and what it would cost, from row counts and lengths alone."""

import argparse
import dataclasses
import json

from mtl import api
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.cli.plan_text import plan_text
from mtl.costs.gpus import GPUS


def _declare(parser: argparse.ArgumentParser) -> None:
    declare_settings(parser)
    parser.add_argument(
        "--official-sizes", action="store_true", help="plan with the benchmarks' own row counts; needs no data"
    )
    parser.add_argument(
        "--gpu", metavar="NAME", help=f"estimate time and memory for one of {', '.join(GPUS)} instead of this machine"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with numbers unrounded")


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    config = api.load_config(*split_settings(arguments.settings))
    plan = api.plan(config, official_sizes=arguments.official_sizes, gpu=arguments.gpu)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(plan), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(plan_text(plan), end="")
    return 0


VERB = Verb(
    "plan",
    "show what a run would do and cost, by stage and task, without training or reading a row",
    "mtl plan glue --official-sizes sampling.temperature=5",
    _declare,
    _act,
)
