"""Putting a training together: its update plan, model, weighting, optimiser and the preparation of its batches."""

import math
from dataclasses import dataclass

from mtl.config.weighting import ConstantWeighting
from mtl.data.batches import BatchSource
from mtl.data.planner import Planner, make_planner
from mtl.models.multitask import MultitaskModel
from mtl.runtime.checkpoint_files import verify_checkpoint
from mtl.stages.context import RunContext, Unit
from mtl.stages.models import build_model, check_heads, load_weights
from mtl.training.optimizer import Optimizer
from mtl.training.prepared import Preparation
from mtl.training.update import Updater
from mtl.weighting.registry import make_weighting

_SNAPSHOTS = 10


@dataclass(frozen=True)
class Parts:
    """What a training is made of."""

    planner: Planner
    model: MultitaskModel
    updater: Updater
    optimizer: Optimizer
    preparation: Preparation
    evaluate_every: int | None


def build_parts(context: RunContext, unit: Unit) -> Parts:
    """All parts at their start: before any update, nothing resumed."""
    settings, seed = unit.settings, context.config.seed
    data = [context.data[task] for task in unit.tasks]
    specs = [task.spec for task in data]
    streams = [task.stream(seed, settings) for task in data]
    sizes = {task.spec.name: task.sampler_size(settings, stream) for task, stream in zip(data, streams, strict=True)}
    planner = make_planner(settings, seed, streams, sizes)
    model = build_model(context.loaded, specs, unit.heads, seed)
    if unit.start is not None:
        verify_checkpoint(unit.start)
        check_heads(unit.start, specs)
        load_weights(model, unit.start)
    model.to(context.device)
    # One task has nothing to be weighed against: a weight would only change the size of its gradient.
    chosen = settings.weighting if len(specs) > 1 else ConstantWeighting()
    weighting = make_weighting(chosen, specs, {s.task: s.size for s in streams}, planner.total)
    optimizer = Optimizer(model, settings.optimizer, unit.heads, planner.total, weighting.parameters())
    updater = Updater(
        model,
        optimizer,
        weighting,
        combine=settings.training.combine,
        precision=context.precision,
        device=context.device,
        seed=seed,
    )
    preparation = Preparation(
        BatchSource({task.spec.name: task.train for task in data}),
        "rows" if settings.training.rows_per_update else "tokens",
        settings.training.micro_batches,
        settings.training.tokens_per_micro_batch,
        pin=context.device.type == "cuda",
    )
    return Parts(planner, model, updater, optimizer, preparation, _evaluate_every(unit, planner.total))


def _evaluate_every(unit: Unit, total: int) -> int | None:
    """As set; a selection that needs scores and says nothing gets ten of them."""
    if unit.settings.evaluation.every is None and unit.settings.selection.on != "last":
        return math.ceil(total / _SNAPSHOTS)
    return unit.settings.evaluation.every
