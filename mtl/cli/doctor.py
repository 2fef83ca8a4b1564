"""`mtl doctor`: what is installed, which data and models are here, and how to get the rest."""

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from mtl import api
from mtl.cli.arguments import Verb, declare_settings, load_plugins, split_settings
from mtl.config.load import read_document, validate_config
from mtl.studies.columns import aligned
from mtl.tasks.registry import names

if TYPE_CHECKING:
    from mtl.stages.doctor import Diagnosis

_MISSING = 3


def _declare(parser: argparse.ArgumentParser) -> None:
    declare_settings(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    document = read_document(*split_settings(arguments.settings))
    survey = "tasks" not in document
    document.setdefault("tasks", list(names()))
    diagnosis = api.doctor(validate_config(document), survey=survey)
    if arguments.json:
        found = {"ready": diagnosis.ready, **dataclasses.asdict(diagnosis)}
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print(*_lines(diagnosis, survey=survey), sep="\n")
    return 0 if diagnosis.ready else _MISSING


def _lines(diagnosis: "Diagnosis", *, survey: bool) -> list[str]:
    rows = [(finding.topic, finding.name, finding.state, finding.text) for finding in diagnosis.findings]
    header, *lines = aligned(("topic", "name", "state", "what"), rows, left=(0, 1, 2, 3))
    told = [header]
    for finding, line in zip(diagnosis.findings, lines, strict=True):
        told.append(line)
        if finding.mend is not None:
            told.append(f"    -> {finding.mend}")
    if survey:
        return [*told, "", "`mtl doctor CONFIG` says whether a config could run here."]
    missing = sum(finding.state == "missing" for finding in diagnosis.findings)
    return [*told, "", "ready: nothing is missing" if diagnosis.ready else f"not ready: {missing} missing"]


VERB = Verb(
    "doctor",
    "say which software, data and models are here and how to get the rest; exit code 3 if a config lacks some",
    "mtl doctor glue data.root=~/data",
    _declare,
    _act,
)
