"""From a stage's settings and its tasks' training rows to the plan of all its updates."""

import math
from collections.abc import Mapping, Sequence

from mtl.config.run import StageSettings
from mtl.config.sampling import ReplaySampling
from mtl.data.drawn_plan import DrawnPlanner, UpdateSize
from mtl.data.exact_block_plan import ExactBlockPlanner, blocks_of
from mtl.data.exact_plan import ExactEpochPlanner
from mtl.data.replay_plan import ReplayPlanner, replay_planner
from mtl.data.streams import TaskStream
from mtl.errors import ConfigError
from mtl.sampling.registry import make_sampler

Planner = DrawnPlanner | ExactEpochPlanner | ExactBlockPlanner | ReplayPlanner


def make_planner(
    settings: StageSettings, seed: int, streams: Sequence[TaskStream], sampler_sizes: Mapping[str, int]
) -> Planner:
    """The planner of a stage; ``sampler_sizes`` drive the shares (official or actual sizes, by task name)."""
    training = settings.training
    if settings.sampling.kind == "exact_epoch":
        return _exact_planner(settings, seed, streams)
    # Summing lengths reads every row of every task: only where the number of updates follows from them.
    counted = 0 if training.updates is not None else _units(streams, in_rows=training.rows_per_update is not None)
    total = updates_of(settings, counted)
    if isinstance(settings.sampling, ReplaySampling) and len(streams) > 1:
        return replay_planner(settings.sampling.from_, training, total, streams)
    groups = None if training.tasks_per_update == "any" else training.tasks_per_update
    if groups is not None and training.rows_per_update is not None and groups > training.rows_per_update:
        raise ConfigError(
            f"training.tasks_per_update is {groups}, more than the {training.rows_per_update} rows of an update; "
            "lower it, or set it to any"
        )
    return DrawnPlanner(
        seed,
        total,
        streams,
        make_sampler(settings.sampling, sampler_sizes),
        UpdateSize(training.rows_per_update, training.tokens_per_update, groups),
    )


def _units(streams: Sequence[TaskStream], *, in_rows: bool) -> int:
    """Rows or tokens of an epoch."""
    return sum(stream.size if in_rows else int(stream.lengths.sum()) for stream in streams)


def updates_of(settings: StageSettings, units: float) -> int:
    """Updates of a training: as set, or ceil(epochs x units / units per update), ``units`` being those of an epoch."""
    training = settings.training
    if training.updates is not None:
        return training.updates
    assert training.epochs is not None
    per_update = training.rows_per_update or training.tokens_per_update
    assert per_update is not None
    return math.ceil(whole_units(training.epochs * units) / per_update)


def whole_units(units: float) -> int:
    """The next whole number, a rounding error of the multiplication that gave ``units`` apart."""
    return math.ceil(round(units, 6))


def _exact_planner(settings: StageSettings, seed: int, streams: Sequence[TaskStream]) -> Planner:
    training = settings.training
    if training.rows_per_update is None or training.tasks_per_update not in ("any", 1):
        raise ConfigError(
            "sampling.kind exact_epoch takes every example once, in updates of a number of rows that mix tasks as they "
            "come or hold one: set training.rows_per_update, and training.tasks_per_update to any or 1"
        )
    if training.tasks_per_update == 1:
        blocks = int(blocks_of(streams, training.rows_per_update).sum())
        total = training.updates or whole_units((training.epochs or 0.0) * blocks)
        return ExactBlockPlanner(seed, total, streams, training.rows_per_update)
    rows = sum(stream.size for stream in streams)
    total = updates_of(settings, rows)
    examples = total * training.rows_per_update if training.epochs is None else whole_units(training.epochs * rows)
    return ExactEpochPlanner(seed, total, streams, training.rows_per_update, examples)
