"""`mtl tasks`: the known tasks, how each is scored, and what of its data is here."""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from mtl import api
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.config.documents import read_yaml
from mtl.config.load import read_document, validate_config
from mtl.config.locations import data_root
from mtl.config.task_files import is_task_file, read_definition
from mtl.stages.catalogue import SplitEntry, TaskEntry
from mtl.studies.columns import aligned
from mtl.tasks.registry import expand, names


def _declare(parser: argparse.ArgumentParser) -> None:
    declare_settings(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, a list of tasks")


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    words, overrides = split_settings(arguments.settings)
    task_files = [Path(word) for word in words if is_task_file(word) and "name" in read_yaml(Path(word))]
    document = read_document([word for word in words if Path(word) not in task_files], overrides)
    if task_files:
        document["tasks"] = [read_definition(path) for path in task_files]
    document.setdefault("tasks", list(names()))
    config = validate_config(document)
    root = data_root(config)
    entries = api.task_catalogue(expand(config.tasks), root)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in entries], indent=2, ensure_ascii=False))
        return 0
    print(*_lines(entries), sep="\n")
    print(f"\ndata root: {root or 'not set (data.root=DIR or MTL_DATA_DIR)'}; * marks primary metrics")
    return 0


def _lines(entries: Sequence[TaskEntry]) -> list[str]:
    header = ("task", "data", "train", "official", "scored on", "rows", "official", "metrics", "labels")
    rows = []
    for entry in entries:
        train = [split for name, split in entry.splits.items() if name == "train"]
        dev = [split for name, split in entry.splits.items() if name != "train"]
        metrics = " ".join(name + ("*" if name in entry.primary else "") for name in entry.metrics)
        rows.append(
            (
                entry.name,
                entry.data,
                *_counts(train),
                "+".join(name for name in entry.splits if name != "train"),
                *_counts(dev),
                metrics,
                _labels(entry),
            )
        )
    return aligned(header, rows, left=(0, 1, 4, 7, 8))


def _counts(splits: Sequence[SplitEntry]) -> tuple[str, str]:
    here = "+".join("-" if split.rows is None else f"{split.rows:,}" for split in splits)
    official = "+".join("-" if split.rows_official is None else f"{split.rows_official:,}" for split in splits)
    return here or "-", official or "-"


def _labels(entry: TaskEntry) -> str:
    if entry.score_range is not None:
        return "{:g} to {:g}".format(*entry.score_range)
    return " ".join(entry.labels)


VERB = Verb(
    "tasks",
    "list the known tasks (or those of a config, or task files) and whether their data are here",
    "mtl tasks data.root=~/data",
    _declare,
    _act,
)
