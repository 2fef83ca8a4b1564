"""How many rows a stage trains on, and which row counts drive its sampler, told without reading a row."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from mtl.config.run import RunConfig, StageSettings
from mtl.data.folds import is_folded
from mtl.data.subsets import HOLDOUT_ROWS, HOLDOUT_SHARE, Portion
from mtl.errors import ConfigError
from mtl.tasks.spec import TaskSpec

Value = TypeVar("Value", int, float)


def train_portion(config: RunConfig, task: str) -> Portion:
    """How much of its training rows ``data.max_train_rows`` or ``data.fraction`` leaves ``task``."""
    return Portion(_of_task(config.data.max_train_rows, task), _of_task(config.data.fraction, task))


def most_dev_rows(config: RunConfig, task: str) -> int | None:
    """The most rows of each dev split that ``task``, which is trained, is scored on; None for all."""
    return _of_task(config.data.max_dev_rows, task)


def training_rows(rows: int, *, portion: Portion, holdout: bool) -> int:
    """Rows of a split of ``rows`` that are trained on, once a holdout is set aside and the rest is cut to ``portion``.

    With a holdout it is the least there can be: rows that share a text stay together, so fewer may be set aside.
    """
    return portion.of(rows - min(int(HOLDOUT_SHARE * rows), HOLDOUT_ROWS) if holdout else rows)


def rows_without_fold(config: RunConfig, spec: TaskSpec, train: int, dev: int) -> int:
    """Rows of train once ``splits`` are as the config says: all folds but one, or ``train`` as it is.

    Of folds it is the mean: rows that share a text stay together, so that one may have a few more or less.
    """
    folds = config.splits.kfold
    if folds is None or not is_folded(spec, train + dev):
        return train
    return round((train + dev) * (folds - 1) / folds)


def sampler_sizes(settings: StageSettings, specs: Sequence[TaskSpec], rows: Mapping[str, int]) -> dict[str, int]:
    """The row counts, by task in the order of ``specs``, that shares are computed from.

    Those of ``rows``, or with ``sampling.sizes: official`` of the benchmark; ConfigError where a task has none.
    """
    if settings.sampling.sizes == "actual":
        return {spec.name: rows[spec.name] for spec in specs}
    sizes = {spec.name: spec.splits["train"].official_rows for spec in specs}
    missing = [name for name, size in sizes.items() if size is None]
    if missing:
        raise ConfigError(
            f"sampling.sizes is official, but {', '.join(missing)} has no official row count; set sampling.sizes=actual"
        )
    return {name: size for name, size in sizes.items() if size is not None}


def _of_task(setting: Value | Mapping[str, Value] | None, task: str) -> Value | None:
    """What is set for a task by a value for all, or by one for each task named."""
    return setting.get(task) if isinstance(setting, Mapping) else setting
