"""How often each task is expected to come up in the training of one model, from row counts alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtl.config.run import StageSettings
from mtl.data.exact_block_plan import ExactBlockPlanner
from mtl.data.exact_plan import ExactEpochPlanner
from mtl.data.planner import make_planner, updates_of
from mtl.data.replay_plan import ReplayPlanner
from mtl.data.streams import TaskStream
from mtl.sampling.probabilities import FloatArray
from mtl.sampling.registry import make_sampler
from mtl.stages.sizes import sampler_sizes
from mtl.tasks.spec import TaskSpec

# Steps at which changing probabilities are looked at; a mean over more would take longer than a plan may.
_PROBED_STEPS = 4096
_SIZES_PLAY_NO_PART = ("uniform", "fixed", "round_robin", "replay")


@dataclass(frozen=True)
class Expectations:
    """Shares (K,) of the update's unit in the ``first`` and ``last`` update, and their mean over all, ``shares``.

    ``updates`` and ``examples`` (of all updates together) are None where they depend on the rows' lengths.
    ``counted_sizes`` are what shares are computed from, after the cap; None where sizes play no part.
    """

    updates: int | None
    examples: int | None
    first: FloatArray
    last: FloatArray
    shares: FloatArray
    counted_sizes: dict[str, int | None]


def expectations(settings: StageSettings, specs: Sequence[TaskSpec], rows: dict[str, int]) -> Expectations:
    """What to expect of a training over ``specs`` with ``rows`` training rows by name; ConfigError as the run's."""
    training = settings.training
    exact = settings.sampling.kind == "exact_epoch"
    sizes = rows if exact or len(specs) == 1 else sampler_sizes(settings, specs, rows)
    if exact or len(specs) > 1:
        planner = make_planner(settings, 0, [_unread_stream(name, count) for name, count in rows.items()], sizes)
        examples = None
        if isinstance(planner, ExactEpochPlanner | ExactBlockPlanner | ReplayPlanner) and planner.total > 0:
            examples = planner.examples
    else:
        planner, examples = None, None
    known = training.rows_per_update is not None or training.updates is not None
    updates = updates_of(settings, sum(rows.values())) if known else None
    if planner is not None and exact:
        updates = planner.total
    if examples is None and training.rows_per_update is not None and updates is not None:
        examples = updates * training.rows_per_update
    if isinstance(planner, ReplayPlanner):
        first, last, shares = _replayed_shares(planner, updates)
    else:
        first, last, shares = _shares(settings, sizes, updates)
    return Expectations(updates, examples, first, last, shares, _counted(settings, sizes))


def _unread_stream(task: str, rows: int) -> TaskStream:
    """A stream of which only the number of rows is known; it takes no memory and costs nothing to make."""
    unknown = np.broadcast_to(np.int64(0), (rows,))
    return TaskStream(task, 0, unknown, unknown)


def _shares(
    settings: StageSettings, sizes: dict[str, int], updates: int | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if len(sizes) == 1:
        return np.ones(1), np.ones(1), np.ones(1)
    sampler = make_sampler(settings.sampling, sizes)
    # A path over the training looks the same whatever its length, but for rounding.
    total = _PROBED_STEPS if updates is None else updates
    probed = np.unique(np.linspace(0, total - 1, min(total, _PROBED_STEPS)).round().astype(np.int64))
    path = np.stack([sampler.probabilities(int(step), total) for step in probed])
    return path[0], path[-1], path.mean(axis=0)


def _replayed_shares(planner: ReplayPlanner, updates: int | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of examples, as they were drawn; of the whole recording where the number of updates is not known."""
    counts = planner.counts[: updates or len(planner.counts)]
    return planner.probabilities(0), planner.probabilities(len(counts) - 1), counts.sum(axis=0) / counts.sum()


def _counted(settings: StageSettings, sizes: dict[str, int]) -> dict[str, int | None]:
    if len(sizes) == 1 or settings.sampling.kind in _SIZES_PLAY_NO_PART:
        return dict.fromkeys(sizes)
    cap = getattr(settings.sampling, "cap", None)
    return {task: size if cap is None else min(size, cap) for task, size in sizes.items()}
