"""`mtl bench`: how fast the project trains, evaluates and tokenises, beside Hugging Face's Trainer; this machine."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from mtl import api
from mtl.bench.records import Peer
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.cli.bench_text import evaluation_text, machine_text, tokenising_text, training_text
from mtl.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel


_ANY_TASK = "mini/entail2"


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("train", "eval", "tokenise", "machine"), help="what to measure")
    declare_settings(parser)
    parser.add_argument(
        "--against",
        type=_peers,
        default=(),
        metavar="PEERS",
        help="train: measure these in turn with mtl, separated by commas: " + ", ".join(get_args(Peer)),
    )
    parser.add_argument("--pairs", type=int, default=3, metavar="N", help="sections of each side (3)")
    parser.add_argument("--updates", type=int, metavar="N", help="timed updates of a section; about 12 s by default")
    parser.add_argument("--profile", action="store_true", help="train: list the operators that take most time")
    parser.add_argument("--json", metavar="FILE", help="write all figures to FILE as well")


def _peers(text: str) -> tuple[str, ...]:
    peers = tuple(text.split(","))
    unknown = sorted(set(peers) - set(get_args(Peer)))
    if unknown or len(set(peers)) < len(peers):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of different peers among {', '.join(get_args(Peer))}")
    return peers


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    target = None if arguments.json is None else Path(arguments.json)
    if target is not None and not target.absolute().parent.is_dir():
        raise ConfigError(f"--json {target}: there is no directory {target.parent}; make it first")
    if arguments.kind != "train" and (arguments.against or arguments.profile):
        raise ConfigError(f"--against and --profile are for mtl bench train, not for {arguments.kind}: leave them out")
    document, text = _measure(arguments)
    if target is not None:
        target.write_text(document.model_dump_json(indent=2) + "\n", encoding="utf-8")
    print(text, end="")
    return 0


def _measure(arguments: argparse.Namespace) -> "tuple[BaseModel, str]":
    configs, overrides = split_settings(arguments.settings)
    if arguments.kind == "machine":
        # Tasks play no part, but every config has some.
        machine = api.bench_machine(api.load_config(configs, [f"tasks=[{_ANY_TASK}]", *overrides]))
        return machine, machine_text(machine)
    config = api.load_config(configs, overrides)
    pairs, updates, plugins = arguments.pairs, arguments.updates, arguments.plugin
    if arguments.kind == "eval":
        evaluation = api.bench_evaluation(config, pairs=pairs, updates=updates, plugins=plugins)
        return evaluation, evaluation_text(evaluation)
    if arguments.kind == "tokenise":
        tokenising = api.bench_tokenising(config, pairs=pairs, updates=updates, plugins=plugins)
        return tokenising, tokenising_text(tokenising)
    training = api.bench_training(
        config, against=arguments.against, pairs=pairs, updates=updates, profile=arguments.profile, plugins=plugins
    )
    return training, training_text(training)


VERB = Verb(
    "bench",
    "measure the speed of training (beside Hugging Face's Trainer if asked), evaluation, tokenising, or this machine",
    "mtl bench train glue_minilm 'tasks=[glue/rte]' data.root=~/data --against hf-tuned --json rte.json",
    _declare,
    _act,
)
