"""Signals that ask a run to stop: noted at once, obeyed where the run can save itself."""

import logging
import os
import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from mtl.errors import StoppedError
from mtl.runtime.ranks import ALONE, Ranks

logger = logging.getLogger("mtl")

_STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopSignals:
    """While the ``with`` block runs, SIGTERM, SIGUSR1 and SIGINT set a flag; a second SIGINT leaves at once.

    Python delivers signals to the main thread only, so in another thread nothing is installed and nothing is ever
    requested. On leaving, the handlers found on entering are back.

    Of a run on several ranks any may be signalled; all stop where they next ask together. When an error ends such a
    run, SIGTERM is ignored from then on: torchrun sends it to every rank as soon as one has ended, and each is to come
    to its own message and exit code. It kills those that take longer than its own patience.
    """

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self._ranks = ranks
        self._requested: str | None = None
        self._interrupts = 0
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    @property
    def requested(self) -> str | None:
        """The name of the first signal received here, such as ``SIGTERM``; None while there was none."""
        return self._requested

    def agree(self) -> bool:
        """Whether any rank was signalled, from now on the same on all of them; collective."""
        raised = self._ranks.any([self._requested == number.name for number in _STOPPING])
        names = [number.name for number, asked in zip(_STOPPING, raised, strict=True) if asked]
        if names:
            if self._ranks.size > 1:
                logger.info("%s: all ranks are stopping as soon as the state is saved", names[0])
            self._requested = names[0]
        return bool(names)

    def agree_and_raise(self) -> None:
        """Raise ``StoppedError`` on all ranks if any was signalled; collective."""
        if self.agree():
            self.raise_if_requested()

    def raise_if_requested(self) -> None:
        """Raise ``StoppedError`` if a signal came: to be called once the state is saved. Not collective."""
        if self._requested is not None:
            stopped = StoppedError(
                f"stopped by {self._requested}; --resume continues from the last checkpoint",
                interrupted_by_user=self._requested == "SIGINT",
            )
            stopped.reported_elsewhere = not self._ranks.first
            raise stopped

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _STOPPING:
                self._before[number] = signal.getsignal(number)
                signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before and self._ranks.size > 1 and kind is not None:
            self._before[signal.SIGTERM] = signal.SIG_IGN
        for number, handler in self._before.items():
            # None stands for a handler that Python did not install and cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if received is signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                raise KeyboardInterrupt
        if self._requested is None:
            self._requested = received.name
            if self._ranks.size > 1:
                return  # Said once, by the first rank, when all of them know.
            # Not logged or printed: buffered output may not be entered again from a handler.
            with suppress(OSError):
                os.write(2, f"\n{received.name}: stopping as soon as the state is saved\n".encode())
