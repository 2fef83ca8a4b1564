"""The plan of a run as text for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from mtl.cli.cost_text import cost_lines
from mtl.stages.plan_records import ModelPlan, RunPlan, StagePlan, TaskPlan
from mtl.studies.columns import aligned

UNKNOWN = "?"
_HEADER = ("task", "rows", "official", "counts as", "p first", "p last", "examples", "epochs", "share")


def plan_text(plan: RunPlan) -> str:
    """The whole plan: what is common, then a block a stage. Probabilities have six decimals; ``?`` is unknown."""
    if plan.official_sizes:
        data = "official row counts; no file was looked at"
    else:
        data = plan.data_root or "no data root; generated tasks only"
    lines = [
        f"out      {plan.out}",
        f"seed     {plan.seed}",
        f"encoder  {_settings(plan.encoder)}",
        f"data     {data}",
        *(f"         {note}" for note in plan.notes),
    ]
    if plan.devices > 1:
        lines.append(f"devices  {plan.devices}, which share the examples of every update")
    for stage in plan.stages:
        lines += ["", *_stage(stage)]
    lines += ["", *cost_lines(plan.costs)]
    return "\n".join(lines) + "\n"


def _stage(stage: StagePlan) -> Iterator[str]:
    if stage.stage == "joint":
        yield f"joint: one model of {_count(len(stage.models[0].tasks), 'task')}, {_updates(stage.models[0])}"
    else:
        yield f"{stage.stage}: {_count(len(stage.models), 'model')}, one a task"
    groups: dict[str, dict[str, Any]] = {}
    for key, value in stage.settings.items():
        group, _, rest = key.partition(".")
        groups.setdefault(group, {})[rest] = value
    if stage.stage != "joint":
        # With one task there is nothing to choose between.
        del groups["sampling"]
    for group, settings in groups.items():
        yield f"  {group:<12}{_settings(settings)}"
    for model in stage.models:
        if model.changes:
            yield f"  only for {model.task}: {_settings(model.changes)}"
    yield from (f"  {line}" for line in (_joint_table(stage) if stage.stage == "joint" else _models_table(stage)))
    yield from (f"  note: {note}" for note in stage.notes)


def _joint_table(stage: StagePlan) -> list[str]:
    rows = [
        (
            each.task,
            _whole(each.rows),
            _whole(each.rows_official),
            "-" if each.counts_as is None else _whole(each.counts_as),
            f"{each.probability:.6f}",
            f"{each.probability_end:.6f}",
            *_expected(each),
            f"{each.share:.6f}",
        )
        for each in stage.models[0].tasks
    ]
    return aligned(_HEADER, rows)


def _models_table(stage: StagePlan) -> list[str]:
    rows = []
    for model in stage.models:
        each = model.tasks[0]
        updates = _whole(model.updates)
        rows.append((each.task, _whole(each.rows), _whole(each.rows_official), updates, *_expected(each)))
    return aligned(("task", "rows", "official", "updates", "examples", "epochs"), rows)


def _expected(task: TaskPlan) -> tuple[str, str]:
    epochs = UNKNOWN if task.expected_epochs is None else f"{task.expected_epochs:.2f}"
    return _whole(task.expected_examples), epochs


def _updates(model: ModelPlan) -> str:
    return "an unknown number of updates" if model.updates is None else _count(model.updates, "update")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _whole(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _settings(settings: Mapping[str, Any]) -> str:
    """``kind`` first and without its name, the rest as assignments."""
    words = [str(settings["kind"])] if "kind" in settings else []
    words += [f"{key}={_value(value)}" for key, value in settings.items() if key != "kind" and value not in (None, [])]
    return " ".join(words)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
