"""`mtl eval`: score a run's models again, on any split with labels."""

import argparse
from pathlib import Path
from typing import get_args

from mtl.cli.arguments import Verb, load_plugins
from mtl.config.run import Stage
from mtl.tasks.registry import expand


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's directory")
    parser.add_argument("--stage", choices=get_args(Stage), default=None, help="only this stage; all by default")
    parser.add_argument(
        "--task", action="append", default=[], metavar="T", help="only this task or suite; may be repeated"
    )
    parser.add_argument("--split", default=None, help="the split to score; by default those the task is scored on")
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help="as for mtl run")


def _act(arguments: argparse.Namespace) -> int:
    from mtl.stages.evaluate_run import evaluate_run

    load_plugins(arguments.plugin)
    tasks = expand(arguments.task) if arguments.task else None
    scored = evaluate_run(Path(arguments.run), stage=arguments.stage, tasks=tasks, split=arguments.split)
    for stage, records in scored.items():
        for task, splits in records.items():
            for split, record in splits.items():
                for metric, value in record.metrics.items():
                    print(f"{stage} {task} {split} {metric} {value:.4f} ({record.rows} rows)")
    return 0


VERB = Verb(
    "eval",
    "score the models of a run on a split",
    "mtl eval runs/glue --stage joint --task glue/rte --split dev",
    _declare,
    _act,
)
