"""What limits a study's numbers, said before them: each a title and the lines that belong to it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mtl.config.settings import identity_document
from mtl.records import ResultRecord
from mtl.studies.notes import flag_notes, other_rows
from mtl.studies.report.content import Content

_SHUFFLED = re.compile(r"(shuffle|permute).*label|label.*(shuffle|permute)")
_FEW_SEEDS = 3


@dataclass(frozen=True)
class Caveat:
    """One limit of the numbers."""

    title: str
    lines: tuple[str, ...]


def caveats(content: Content) -> list[Caveat]:
    """All that limits the numbers of this study, the gravest first."""
    found = [
        *_unfinished(content),
        *_shuffled(content),
        *_dev(content),
        *_partial(content),
        *_encoder(content),
        *_seeds(content),
        *_differing(content),
        *_flags(content),
    ]
    return [caveat for caveat in found if caveat.lines]


def _unfinished(content: Content) -> Iterator[Caveat]:
    runs = content.study.runs
    missing = sum(run.state != "complete" for run in runs)
    if missing:
        yield Caveat(
            "Half finished",
            (f"{missing} of {len(runs)} runs are not complete, so every number on this page can still change.",),
        )


def _shuffled(content: Content) -> Iterator[Caveat]:
    found: dict[str, list[str]] = {}
    for arm, config in content.configs.items():
        for setting in shuffling(identity_document(config)):
            found.setdefault(setting, []).append(arm)
    lines = tuple(f"{', '.join(arms)}: {setting}" for setting, arms in found.items())
    yield Caveat("Shuffled labels: a control, whose scores mean nothing by themselves", lines)


def shuffling(document: Mapping[str, Any]) -> list[str]:
    """The settings of a run that shuffle labels, whatever they are called."""
    return [
        f"{path} = {value}"
        for path, value in _leaves(document)
        if _SHUFFLED.search(path) and value not in (None, False, 0, (), [], "")
    ]


def _leaves(document: Mapping[str, Any], *parents: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, *parents, key)
        else:
            yield ".".join((*parents, key)), value


def _dev(content: Content) -> Iterator[Caveat]:
    arms = [
        arm.name
        for arm in content.arms
        if any(record.selected_on == "dev" for run in arm.runs for record in arm.record(run).tasks.values())
    ]
    lines = (f"{', '.join(arms)}: weights were selected on the rows they are scored on, so scores are too high.",)
    yield Caveat("Selected on dev", lines if arms else ())


def _partial(content: Content) -> Iterator[Caveat]:
    rows = dict.fromkeys(
        f"{task} {split}: {rows:,} rows, the official release has {official:,}"
        for result in content.results
        for stage in result.stages.values()
        for task, record in stage.tasks.items()
        for split, rows, official in other_rows(record)
    )
    if any(result.partial for result in content.results):
        told = "Trained or scored on other rows than the official release's: not comparable to published scores."
        yield Caveat("Partial data", (told, *rows))


def _encoder(content: Content) -> Iterator[Caveat]:
    lines = dict.fromkeys(
        f"{result.encoder.path} was trained on {', '.join(result.encoder.known_training_data)}"
        for result in content.results
        if result.encoder.known_training_data
    )
    yield Caveat("The encoder has seen related data before", tuple(lines))


def _seeds(content: Content) -> Iterator[Caveat]:
    few = len(content.study.spec.seeds)
    if few < _FEW_SEEDS:
        seeds = "One seed" if few == 1 else "Two seeds"
        told = "no spread is known and nothing can be tested" if few == 1 else "the spread is hardly known"
        yield Caveat("Few seeds", (f"{seeds} for each arm: {told}.",))


def _differing(content: Content) -> Iterator[Caveat]:
    notes = content.table.notes if content.table is not None else ()
    yield Caveat("Compared although they differ", tuple(note for note in notes if note.startswith("differs, as was")))


def _flags(content: Content) -> Iterator[Caveat]:
    results: dict[str, list[ResultRecord]] = {}
    for run in content.study.runs:
        if run.found is not None:
            results.setdefault(run.arms[0], []).append(run.found.result)
    lines = [
        f"{arm}: {note}"
        for arm, runs in results.items()
        for note in flag_notes(runs, list(dict.fromkeys(stage for run in runs for stage in run.stages)))
    ]
    yield Caveat("Marked by the scoring", tuple(lines))
