"""What the ranks of a run make sure of before they start: one directory, one config, one lock."""

from pathlib import Path
from types import TracebackType
from typing import Self

from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.runtime.lock import RunLock
from mtl.runtime.ranks import Ranks


class RankLock:
    """The run's lock, held by the first rank for all of them; errors as for :class:`RunLock`, on every rank."""

    def __init__(self, path: Path, ranks: Ranks) -> None:
        self._lock, self._ranks = RunLock(path), ranks

    def __enter__(self) -> Self:
        self._ranks.first_does(self._lock.__enter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._ranks.first:
            self._lock.__exit__(kind, error, traceback)


def check_same_start(config: RunConfig, ranks: Ranks) -> None:
    """ConfigError if a rank was started with another config than the first; on every rank, as for ``together``."""
    expected = ranks.decide(config.model_dump_json)

    def compare() -> None:
        if config.model_dump_json() != expected:
            raise ConfigError(
                "a rank of this run was started with another config than the first rank; give all of them the same one"
            )

    ranks.together(compare)
