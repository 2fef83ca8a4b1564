"""Signals that ask this process to stop, noted at once and obeyed by whoever asks; light, without torch."""

import os
import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopRequests:
    """While the ``with`` block runs, SIGTERM, SIGUSR1 and SIGINT set a flag; a second SIGINT leaves at once.

    Python delivers signals to the main thread only, so in another thread nothing is installed and nothing is ever
    requested. On leaving, the handlers found on entering are back.
    """

    def __init__(self) -> None:
        self._requested: str | None = None
        self._interrupts = 0
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    @property
    def requested(self) -> str | None:
        """The name of the first signal received here, such as ``SIGTERM``; None while there was none."""
        return self._requested

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                self._before[number] = signal.getsignal(number)
                signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
            self._tell(received)

    def _tell(self, received: signal.Signals) -> None:
        # Not logged or printed: buffered output may not be entered again from a handler.
        with suppress(OSError):
            os.write(2, f"\n{received.name}: stopping as soon as the state is saved\n".encode())
