"""How far a study is: one line, on a terminal always the same one, elsewhere a new one when something changed."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from mtl.atomic import write_text_atomically
from mtl.studies.run_progress import Advance

_logger = logging.getLogger("mtl")

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_OF_SILENCE = 60.0


@dataclass(frozen=True)
class Counts:
    """How many runs are in which state; together all of them. ``queued``: they wait for a place on a cluster.
    ``elsewhere``: another process is at work on them.
    """

    done: int
    running: int
    queued: int
    elsewhere: int
    failed: int
    left: int


def seconds_left(durations: Sequence[float], running: Sequence[Advance], left: int, at_once: int) -> float | None:
    """The time that is left, from how long runs took that are finished and how far others are already.

    ``at_once`` runs are at work at the same time. None before there is a rate to go by.
    """
    known = [*durations, *(each.whole for each in running if each.whole is not None)]
    if not known:
        return None
    mean = sum(known) / len(known)
    rests = [max(mean - each.seconds, 0.0) if each.rest is None else each.rest for each in running]
    return (left * mean + sum(rests)) / max(at_once, 1)


class LiveView:
    """Shows the counts on stderr, and keeps status.json, which is there to be looked at and for nothing else."""

    def __init__(self, name: str, total: int, status: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._status, self._clock = name, status, clock
        self._shown: tuple[Counts, float] | None = None
        self._written: object = None
        layout = "{desc} |{bar:24}| {n_fmt} of {total_fmt} runs done{postfix}"
        self._bar = tqdm(total=total, desc=name, bar_format=layout, disable=None, leave=False)

    def show(self, counts: Counts, left: float | None, states: Mapping[str, str]) -> None:
        """Bring what is shown up to date; may be called as often as one likes."""
        words = _in_words(counts, left)
        self._bar.n = counts.done
        self._bar.set_postfix_str(words, refresh=True)
        now = self._clock()
        if self._bar.disable and self._is_due(counts, now):
            self._shown = (counts, now)
            total = sum(asdict(counts).values())
            _logger.info("%s: %d of %d runs done, %s", self._name, counts.done, total, words)
        if states != self._written:
            self._written = dict(states)
            document = {"counts": asdict(counts), "runs": self._written}
            write_text_atomically(self._status, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def say(self, text: str) -> None:
        """A line of its own, above the bar where there is one."""
        self._bar.clear()
        _logger.info("%s", text)
        self._bar.refresh()

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()

    def _is_due(self, counts: Counts, now: float) -> bool:
        if self._shown is None:
            return True
        before, then = self._shown
        return now - then >= (_SECONDS_BETWEEN_LINES if counts != before else _SECONDS_OF_SILENCE)


def _in_words(counts: Counts, left: float | None) -> str:
    parts = [f"{counts.running} running"]
    if counts.queued:
        parts.append(f"{counts.queued} queued")
    if counts.elsewhere:
        parts.append(f"{counts.elsewhere} at work elsewhere")
    parts += [f"{counts.failed} failed", f"{counts.left} left"]
    if left is not None and counts.running + counts.queued + counts.left:
        parts.append(f"about {_duration(left)} to go")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{max(1, round(seconds))} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
