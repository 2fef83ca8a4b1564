"""Showing how a training goes: one bar on a terminal, elsewhere a line every few seconds."""

import logging
import sys
import time
from collections.abc import Mapping

from tqdm import tqdm

logger = logging.getLogger("mtl")

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Counts updates on stderr; not at all unless ``shown``."""

    def __init__(self, title: str, done: int, total: int, *, shown: bool = True) -> None:
        self._title, self._total, self._done, self._started_at = title, total, done, done
        self._began = self._last = time.monotonic()
        self._shown = shown
        # None: only on a terminal.
        disabled = None if shown else True
        self._bar = tqdm(total=total, initial=done, desc=title, unit="update", disable=disabled, leave=False)

    def advance(self, numbers: Mapping[str, float] | None) -> None:
        """One more update; ``numbers`` are shown where they are new."""
        self._done += 1
        self._bar.update()
        if numbers:
            self._bar.set_postfix({name: f"{value:.3g}" for name, value in numbers.items()}, refresh=False)
        now = time.monotonic()
        if self._shown and self._bar.disable and not sys.stderr.isatty() and now - self._last > _SECONDS_BETWEEN_LINES:
            self._last = now
            left = (self._total - self._done) * (now - self._began) / (self._done - self._started_at)
            logger.info("%s: update %d of %d, about %.0f s left", self._title, self._done, self._total, left)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()
