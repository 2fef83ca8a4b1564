"""What stands under a table so that its numbers are not taken for more than they are."""

from collections.abc import Iterator, Sequence

from mtl.records import ResultRecord, SelectedOn, StageName, TaskRecord
from mtl.studies.table_layout import SPREADS, Spread

_SELECTION: dict[SelectedOn, str] = {
    "last": "the last weights",
    "holdout": "weights selected on a holdout of train",
    "dev": "weights selected on dev, so that scores on it are too high",
}
_FLAGS = {"constant": "all predictions, or all labels, are the same"}


def notes_of(runs: Sequence[ResultRecord], stages: Sequence[StageName]) -> tuple[str, ...]:
    """Notes on runs of one arm, in the order of their seeds, each a line."""
    seeds = ", ".join(str(run.seed) for run in runs)
    spread = f"; {SPREADS['deviation']}" if len(runs) > 1 else "; one run, so no spread"
    notes = [f"seed {seeds} (n = {len(runs)}){spread}"]
    notes += [f"the run of seed {run.seed} is not complete: {run.status}" for run in runs if run.status != "complete"]
    notes += [_selection(stage, runs) for stage in stages]
    notes += _on_folds(runs)
    notes += _on_shuffled_labels(runs)
    notes += _on_rows(runs)
    if any(run.partial for run in runs):
        notes.append("trained or scored on other rows than the official release's: not comparable to published scores")
    notes += dict.fromkeys(_on_encoder(run) for run in runs)
    notes += flag_notes(runs, stages)
    return tuple(notes)


def with_spread(notes: Sequence[str], spread: Spread) -> list[str]:
    """The notes of a table that shows ``spread`` beside its means."""
    return [note.replace(SPREADS["deviation"], SPREADS[spread]) for note in notes]


def _selection(stage: StageName, runs: Sequence[ResultRecord]) -> str:
    records = [record for run in runs if stage in run.stages for record in run.stages[stage].tasks.values()]
    if not records:
        return f"{stage}: nothing was scored"
    chosen = "; ".join(_SELECTION[way] for way in dict.fromkeys(record.selected_on for record in records))
    looks = sorted({record.looks for record in records})
    return f"{stage}: {chosen}; looks: {'-'.join(dict.fromkeys(str(count) for count in (looks[0], looks[-1])))}"


def _on_shuffled_labels(runs: Sequence[ResultRecord]) -> list[str]:
    tasks = dict.fromkeys(task for task, record in _task_records(runs) if record.labels_shuffled)
    if not tasks:
        return []
    return [f"TRAINED ON SHUFFLED LABELS of {', '.join(tasks)}: a control, whose scores are none of these tasks"]


def _on_folds(runs: Sequence[ResultRecord]) -> list[str]:
    folded = dict.fromkeys((task, record.kfold) for task, record in _task_records(runs) if record.kfold is not None)
    if not folded:
        return []
    numbers = sorted({number for _, number in folded})
    tasks = list(dict.fromkeys(task for task, _ in folded))
    alone = sorted({run.fold for run in runs if run.fold is not None})
    what = (
        f"this is fold {', '.join(map(str, alone))} alone"
        if alone
        else "the predictions of all folds are scored as one dev set, and the cost is that of all folds"
    )
    notes = [
        f"{' and '.join(map(str, numbers))}-fold: train and dev of {', '.join(tasks)} were divided anew, examples that "
        f"share a text kept together; {what}: not comparable to scores on dev"
    ]
    others = list(dict.fromkeys(task for task, record in _task_records(runs) if record.kfold is None))
    if others and not alone:
        notes.append(f"{', '.join(others)}: on their own splits, by the models of fold 0")
    return notes


def _on_rows(runs: Sequence[ResultRecord]) -> list[str]:
    found = []
    for task, record in _task_records(runs):
        cut = {split for split, _, _ in cut_splits(record)}
        found += [
            f"* {task} {split}: {rows:,} rows, the official release has {official:,}"
            for split, rows, official in other_rows(record)
            if split not in cut
        ]
        for split, rows, at_hand in cut_splits(record):
            official = record.splits[split].rows_official
            whole = "" if official in (None, at_hand) else f"; the official release has {official:,}"
            found.append(f"* {task} {split}: scored on a fixed part, {rows:,} of {at_hand:,} rows{whole}")
    return list(dict.fromkeys(found))


def is_partial(record: TaskRecord) -> bool:
    """Whether a score needs a mark: rows or labels are not the official release's, or rows at hand were left out."""
    return bool(other_rows(record) or cut_splits(record)) or record.labels_shuffled


def cut_splits(record: TaskRecord) -> list[tuple[str, int, int]]:
    """Splits of which but a part was scored: name, rows scored, rows at hand."""
    return [
        (name, scored.rows, scored.rows_at_hand)
        for name, scored in record.splits.items()
        if scored.rows_at_hand is not None
    ]


def other_rows(record: TaskRecord) -> list[tuple[str, int, int]]:
    """Splits trained on or scored with other rows than the official release has: name, rows, official rows."""
    splits = [("train", record.train_rows, record.train_rows_official)]
    splits += [(name, scored.rows, scored.rows_official) for name, scored in record.splits.items()]
    return [
        (name, rows, official)
        for name, rows, official in splits
        if rows is not None and official is not None and rows != official
    ]


def _on_encoder(run: ResultRecord) -> str:
    known = run.encoder.known_training_data
    told = f"known to have been trained on {'; '.join(known)}" if known else "no known training data recorded"
    return f"encoder: {run.encoder.path}, {told}"


def flag_notes(runs: Sequence[ResultRecord], stages: Sequence[StageName]) -> list[str]:
    """What scoring marked in ``stages``, a line for each mark of a split, with the seeds of all runs that have it."""
    seeds: dict[str, list[str]] = {}
    for run in runs:
        own = str(run.seed) if run.fold is None else f"{run.seed} fold {run.fold}"
        for stage in stages:
            tasks = run.stages[stage].tasks if stage in run.stages else {}
            for task, record in tasks.items():
                for split, scored in record.splits.items():
                    for flag in scored.flags:
                        where = f"{stage}, {task}" if len(stages) > 1 else task
                        seeds.setdefault(f"{where} {split}: {_FLAGS.get(flag, flag)}", []).append(own)
    return [f"{note}, seed {', '.join(found)}" for note, found in seeds.items()]


def _task_records(runs: Sequence[ResultRecord]) -> Iterator[tuple[str, TaskRecord]]:
    for run in runs:
        for stage in run.stages.values():
            yield from stage.tasks.items()
