"""`mtl prepare`: fetch and tokenise ahead, for machines without a network."""

import argparse
from typing import TYPE_CHECKING

from mtl import api
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.studies.columns import aligned

if TYPE_CHECKING:
    from mtl.stages.prepare import Prepared


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    prepared = api.prepare(api.load_config(*split_settings(arguments.settings)))
    print(*_lines(prepared), sep="\n")
    return 0


def _lines(prepared: "Prepared") -> list[str]:
    header = ("task", "split", "rows", "official", "tokens", "size")
    rows = [
        (
            split.task,
            split.split,
            f"{split.rows:,}",
            "-" if split.rows_official is None else f"{split.rows_official:,}",
            f"{split.tokens:,}",
            _size(split.bytes),
        )
        for split in prepared.splits
    ]
    encoder = f"{prepared.encoder}, {_size(prepared.encoder_bytes)}, vocabulary {prepared.vocabulary:,}"
    total = _size(sum(split.bytes for split in prepared.splits))
    return [
        f"encoder  {encoder}",
        f"tokens   {total} in {prepared.cache / 'tokens'}",
        "",
        *aligned(header, rows, left=(0, 1)),
        "",
        "All of it is on this machine; with HF_HUB_OFFLINE=1 a run of this config asks for nothing else.",
    ]


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count >= 2**20 else f"{count / 2**10:,.1f} KiB"


VERB = Verb(
    "prepare",
    "fetch the encoder and tokenise all tasks ahead, for machines without a network",
    "mtl prepare glue data.root=~/data",
    declare_settings,
    _act,
)
