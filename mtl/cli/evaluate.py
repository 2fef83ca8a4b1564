"""`mtl eval`: score a run's models again, on any split with labels; a diagnostic set by its tags as well."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from mtl import api
from mtl.atomic import write_text_atomically
from mtl.cli.arguments import Verb, declare_plugins, load_plugins
from mtl.config.load import load_config
from mtl.config.run import Stage
from mtl.errors import ConfigError
from mtl.rundir import RunDirectory
from mtl.studies.columns import aligned
from mtl.tasks.registry import expand, get


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's directory")
    parser.add_argument("--stage", choices=get_args(Stage), default="joint", help="whose weights; joint by default")
    parser.add_argument(
        "--task", action="append", default=[], metavar="T", help="only this task, suite or task file; may be repeated"
    )
    parser.add_argument("--split", default=None, help="the split to score; by default those the task is scored on")
    parser.add_argument(
        "--out", metavar="FILE", help="write the table of a diagnostic set (glue/ax) to FILE.csv or FILE.json as well"
    )
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    _learn_tasks_of(Path(arguments.run))
    tagged = [name for name in expand(arguments.task) if get(name).tag_columns]
    if arguments.out is not None:
        _check_out(Path(arguments.out), tagged)
    if not tagged or len(tagged) < len(expand(arguments.task)):
        others = [name for name in expand(arguments.task) if name not in tagged] if tagged else arguments.task
        _print_scores(arguments, others)
    for task in tagged:
        _print_diagnosis(arguments, task)
    return 0


def _learn_tasks_of(run: Path) -> None:
    """Make the tasks that the run's config defines known by name; whether it is a run at all is found out later."""
    config = RunDirectory(run).config
    if config.is_file():
        expand(load_config(config).tasks)


def _print_scores(arguments: argparse.Namespace, tasks: Sequence[str]) -> None:
    scores = api.evaluate(arguments.run, stage=arguments.stage, tasks=tasks, split=arguments.split)
    header = ("task", "split", "rows", "metric", "score")
    rows = [
        (task, split, f"{record.rows:,}", metric, f"{value:.4f}")
        for task, splits in scores.items()
        for split, record in splits.items()
        for metric, value in record.metrics.items()
    ]
    print(*aligned(header, rows, left=(0, 1, 3)), sep="\n")


def _print_diagnosis(arguments: argparse.Namespace, task: str) -> None:
    diagnosis = api.diagnose(arguments.run, task, stage=arguments.stage, split=arguments.split)
    rows = [(level, tag, f"{r3:.1f}", f"{count:,}") for level, tag, r3, count in diagnosis.table()]
    print(*aligned((task, "tag", "R3", "rows"), rows, left=(0, 1)), sep="\n")
    if arguments.out is not None:
        out = Path(arguments.out)
        write_text_atomically(out, diagnosis.csv() if out.suffix == ".csv" else diagnosis.json())


def _check_out(out: Path, tagged: Sequence[str]) -> None:
    if len(tagged) != 1:
        raise ConfigError("--out writes the table of one diagnostic set: name it, as in --task glue/ax")
    if out.suffix not in (".csv", ".json"):
        raise ConfigError(f"--out {out}: end the name in .csv or .json, which says what to write")
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no directory {out.parent}")


VERB = Verb(
    "eval",
    "score the models of a run on a split",
    "mtl eval runs/glue --stage joint --task glue/rte --split dev",
    _declare,
    _act,
)
