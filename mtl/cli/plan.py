"""`mtl plan`: what a run would do, from row counts alone."""

import argparse
import dataclasses
import json

from mtl import api
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.cli.plan_text import plan_text


def _declare(parser: argparse.ArgumentParser) -> None:
    declare_settings(parser)
    parser.add_argument(
        "--official-sizes", action="store_true", help="plan with the benchmarks' own row counts; needs no data"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with numbers unrounded")


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    config = api.load_config(*split_settings(arguments.settings))
    plan = api.plan(config, official_sizes=arguments.official_sizes)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(plan), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(plan_text(plan), end="")
    return 0


VERB = Verb(
    "plan",
    "show what a run would do, by stage and task, without training or reading a row",
    "mtl plan glue --official-sizes sampling.temperature=5",
    _declare,
    _act,
)
