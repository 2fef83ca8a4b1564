"""Putting a training together: its update plan, model, weighting, optimiser and the preparation of its batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mtl.config.resolve import resolve_stage
from mtl.config.run import StageSettings
from mtl.config.weighting import ConstantWeighting
from mtl.data.batches import BatchSource
from mtl.data.planner import Planner, make_planner
from mtl.models.multitask import MultitaskModel
from mtl.runtime.checkpoint_files import verify_checkpoint
from mtl.runtime.precision import Precision
from mtl.stages.context import RunContext, Unit, stage_precision
from mtl.stages.model_costs import SNAPSHOTS
from mtl.stages.models import build_model, keep_heads, load_weights
from mtl.training.optimizer import Optimizer
from mtl.training.prepared import Preparation
from mtl.training.update import Updater
from mtl.weighting.protocol import Weighting
from mtl.weighting.registry import make_weighting


@dataclass(frozen=True)
class Parts:
    """What a training is made of."""

    planner: Planner
    model: MultitaskModel
    updater: Updater
    optimizer: Optimizer
    preparation: Preparation
    evaluate_every: int | None
    precision: Precision


def build_parts(context: RunContext, unit: Unit) -> Parts:
    """All parts at their start: before any update, nothing resumed."""
    settings, seed = unit.settings, context.config.seed
    data = [context.data[task] for task in unit.tasks]
    specs = [task.spec for task in data]
    planner, weighting = plan_updates(context, unit.tasks, settings)
    model = build_model(context.initial.loaded, specs, unit.heads, seed)
    if unit.start is None and context.initial.heads is not None:
        keep_heads(model, specs, context.initial.heads)
    if unit.start is not None:
        verify_checkpoint(unit.start)
        load_weights(model, unit.start, heads=False)
        if unit.keep_heads:
            keep_heads(model, specs, unit.start)
    model.to(context.device)
    for parameter in weighting.parameters():
        parameter.data = parameter.data.to(context.device)
    optimizer = Optimizer(model, settings.optimizer, unit.heads, planner.total, weighting.parameters())
    precision = stage_precision(context.config, settings, context.precision, context.device)
    preparation = Preparation(
        BatchSource({task.spec.name: task.train for task in data}),
        "rows" if settings.training.rows_per_update else "tokens",
        settings.training.micro_batches,
        settings.training.tokens_per_micro_batch,
        pin=context.device.type == "cuda",
        ranks=context.ranks,
    )
    updater = Updater(
        model,
        optimizer,
        weighting,
        preparation,
        combine=settings.training.combine,
        precision=precision,
        device=context.device,
        seed=seed,
    )
    return Parts(planner, model, updater, optimizer, preparation, _evaluate_every(unit, planner.total), precision)


def check_plans(context: RunContext) -> None:
    """Raise, before the first training, the ConfigError or DataError that planning any of them would raise."""
    for stage in context.config.stages:
        for task in [None] if stage == "joint" else context.data:
            members = tuple(context.data) if task is None else (task,)
            plan_updates(context, members, resolve_stage(context.config, stage, task))


def plan_updates(context: RunContext, tasks: Sequence[str], settings: StageSettings) -> tuple[Planner, Weighting]:
    """The planner of a training of ``tasks``, and its weighting, which knows the training's length from it."""
    data, seed = [context.data[task] for task in tasks], context.config.seed
    streams = [task.stream(seed, settings) for task in data]
    sizes = {task.spec.name: task.sampler_size(settings, stream) for task, stream in zip(data, streams, strict=True)}
    planner = make_planner(settings, seed, streams, sizes)
    # One task has nothing to be weighed against: a weight would only change the size of its gradient.
    weighting = settings.weighting if len(data) > 1 else ConstantWeighting()
    rows = {stream.task: stream.size for stream in streams}
    return planner, make_weighting(weighting, [task.spec for task in data], rows, planner.total)


def _evaluate_every(unit: Unit, total: int) -> int | None:
    """As set; a selection that needs scores and says nothing gets ten of them."""
    if unit.settings.evaluation.every is None and unit.settings.selection.on != "last":
        return math.ceil(total / SNAPSHOTS)
    return unit.settings.evaluation.every
