"""What a run would do, computed from row counts alone: no row is read, nothing is tokenised, nothing is written.

What would need the lengths of the rows (updates sized in tokens) is None and said in a note, never guessed; what the
run would cost (see mtl.stages.plan_costs) is told where those lengths are remembered from an earlier run.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtl.config.locations import data_root
from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig, Stage, StageSettings
from mtl.config.settings import identity_document
from mtl.data.files import missing_message
from mtl.data.sources import count_rows
from mtl.data.subsets import FOLDED_BELOW
from mtl.errors import ConfigError, DataError
from mtl.stages.checks import check_config
from mtl.stages.expectations import expectations
from mtl.stages.plan_costs import run_costs
from mtl.stages.plan_records import ModelPlan, RunPlan, StagePlan, TaskPlan
from mtl.stages.sizes import most_dev_rows, rows_without_fold, train_portion, training_rows
from mtl.tasks.registry import expand, get, split_roles
from mtl.tasks.spec import TaskSpec


def plan_run(config: RunConfig, *, official_sizes: bool = False, gpu: str | None = None) -> RunPlan:
    """The plan of ``config`` from the rows at hand, or with ``official_sizes`` as if every task's data were whole.

    Its cost is that on this machine as it was measured, or an estimate for the ``gpu`` of that name.

    Raises ConfigError as the run would for settings that cannot be meant, and DataError where a training file is
    missing.
    """
    names = expand(config.tasks)
    check_config(config, names)
    specs = tuple(get(name) for name in split_roles(names)[0])
    root = None if official_sizes else data_root(config)
    rows = {spec.name: _rows(spec, "train", root, official_sizes=official_sizes) for spec in specs}
    divided = rows if config.splits.kfold is None else _folded_rows(config, specs, rows, root, official_sizes)
    stages = tuple(_plan_stage(config, stage, specs, divided) for stage in config.stages)
    return RunPlan(
        config.out,
        config.seed,
        tuple(rows),
        identity_document(config.encoder),
        None if root is None else str(root),
        official_sizes,
        config.training.devices,
        stages,
        (*(() if official_sizes else _notes_on_partial_data(specs, root)), *_notes_on_data_settings(config, specs)),
        run_costs(config, names, stages, rows, official_sizes=official_sizes, gpu=gpu),
    )


def _folded_rows(
    config: RunConfig, specs: Sequence[TaskSpec], rows: dict[str, int], root: Path | None, official_sizes: bool
) -> dict[str, int]:
    """Rows of train by task, where small tasks are divided into folds."""
    found = {}
    for spec in specs:
        dev = sum(_rows(spec, split, root, official_sizes=official_sizes) for split in spec.dev_splits)
        found[spec.name] = rows_without_fold(config, spec, rows[spec.name], dev)
    return found


def _rows(spec: TaskSpec, split: str, root: Path | None, *, official_sizes: bool) -> int:
    if official_sizes:
        rows = spec.splits[split].official_rows
        if rows is None:
            raise ConfigError(f"{spec.name} has no official row count; plan without --official-sizes")
        return rows
    rows = count_rows(spec, split, root)
    if rows is None:
        official = spec.splits[split].official_rows is not None
        raise DataError(
            missing_message(spec, split, root) + (" Or plan with --official-sizes, which needs no data." * official)
        )
    return rows


def _notes_on_partial_data(specs: Sequence[TaskSpec], root: Path | None) -> tuple[str, ...]:
    notes = []
    for spec in specs:
        for split in ("train", *spec.dev_splits):
            rows, official = count_rows(spec, split, root), spec.splits[split].official_rows
            if rows is None:
                notes.append(f"{spec.name}: {split} is missing")
            elif official not in (None, rows):
                notes.append(f"{spec.name}: {split} has {rows:,} rows, the official release {official:,}")
    return tuple(notes)


def _notes_on_data_settings(config: RunConfig, specs: Sequence[TaskSpec]) -> list[str]:
    """What sets the scores of the run apart from others of the same data."""
    cut = [(spec.name, most_dev_rows(config, spec.name)) for spec in specs]
    notes = [f"{name}: each dev split is scored on {most:,} rows at most" for name, most in cut if most is not None]
    return notes + [f"{name}: trained on shuffled labels, as a control" for name in config.data.shuffled_labels]


def _plan_stage(config: RunConfig, stage: Stage, specs: Sequence[TaskSpec], rows: dict[str, int]) -> StagePlan:
    common = resolve_stage(config, stage, None)
    if stage == "joint":
        models = [_plan_model(config, common, common, None, specs, rows)]
    else:
        models = [
            _plan_model(config, resolve_stage(config, stage, spec.name), common, spec.name, [spec], rows)
            for spec in specs
        ]
    notes = []
    if any(model.updates is None for model in models):
        notes.append("updates are sized in tokens: their number is known only once the rows are tokenised")
    if any(each.expected_examples is None for model in models for each in model.tasks):
        notes.append("shares are of tokens: examples and epochs are known only once the rows are tokenised")
    if common.selection.on == "holdout":
        notes.append(
            "rows are those left by the holdout: it sets aside 10%, at most 2,000, or a few less, since rows that "
            "share a text stay together"
        )
    if config.splits.kfold is not None:
        notes.append(
            f"rows of tasks under {FOLDED_BELOW:,} are those of all but one of {config.splits.kfold} folds of train "
            "and dev, or a few more or less, since rows that share a text stay together; scoring is reckoned "
            "for dev as it is"
        )
    notes += _notes_on_snapshots(config, stage)
    return StagePlan(stage, flat_settings(common), tuple(models), tuple(notes))


def _notes_on_snapshots(config: RunConfig, stage: Stage) -> tuple[str, ...]:
    """What a choice of ``finetune_from`` means for the stage; nothing where it is the usual one."""
    if stage == "joint" and config.finetune_from == "task_best":
        return ("for each task the snapshot that scores best for it is kept, beside the one that is scored",)
    if stage == "finetune" and config.finetune_from == "task_best":
        return ("each model starts from the joint snapshot that scores best for its task",)
    if stage == "finetune" and config.finetune_from == "last":
        return ("each model starts from the joint stage's last weights",)
    return ()


def _plan_model(
    config: RunConfig,
    settings: StageSettings,
    common: StageSettings,
    task: str | None,
    specs: Sequence[TaskSpec],
    rows: dict[str, int],
) -> ModelPlan:
    holdout = settings.selection.on == "holdout"
    trained = {
        spec.name: training_rows(rows[spec.name], portion=train_portion(config, spec.name), holdout=holdout)
        for spec in specs
    }
    for name, count in trained.items():
        if count == 0:
            raise DataError(f"{name} has no row left to train on; raise data.max_train_rows, or use more data")
    expected = expectations(settings, specs, trained)
    before = flat_settings(common)
    changes = {key: value for key, value in flat_settings(settings).items() if before.get(key) != value}
    plans = []
    for index, spec in enumerate(specs):
        examples = None if expected.examples is None else float(expected.shares[index]) * expected.examples
        plans.append(
            TaskPlan(
                spec.name,
                trained[spec.name],
                spec.splits["train"].official_rows,
                expected.counted_sizes[spec.name],
                float(expected.first[index]),
                float(expected.last[index]),
                float(expected.shares[index]),
                examples,
                None if examples is None else examples / trained[spec.name],
            )
        )
    return ModelPlan(task, changes, expected.updates, tuple(plans))


def flat_settings(settings: StageSettings) -> dict[str, Any]:
    """The settings that can change a result and are set, by dotted key: ``{"training.epochs": 3.0, ...}``."""
    flat: dict[str, Any] = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, item in value.items():
                visit(f"{prefix}.{key}" if prefix else key, item)
        elif value is not None and value != {}:
            flat[prefix] = value

    visit("", identity_document(settings))
    return flat
