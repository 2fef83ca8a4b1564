"""Signals that ask a run to stop: noted at once, obeyed where the run can save itself."""

import logging
import signal
from types import TracebackType

from mtl.errors import StoppedError
from mtl.runtime.ranks import ALONE, Ranks
from mtl.runtime.stop_requests import STOPPING, StopRequests

logger = logging.getLogger("mtl")


class StopSignals(StopRequests):
    """The requests to stop that a run receives, which ends by saving itself.

    Of a run on several ranks any may be signalled; all stop where they next ask together. When an error ends such a
    run, SIGTERM is ignored from then on: torchrun sends it to every rank as soon as one has ended, and each is to come
    to its own message and exit code. It kills those that take longer than its own patience.
    """

    def __init__(self, ranks: Ranks = ALONE) -> None:
        super().__init__()
        self._ranks = ranks

    def agree(self) -> bool:
        """Whether any rank was signalled, from now on the same on all of them; collective."""
        raised = self._ranks.any([self._requested == number.name for number in STOPPING])
        names = [number.name for number, asked in zip(STOPPING, raised, strict=True) if asked]
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before and self._ranks.size > 1 and kind is not None:
            self._before[signal.SIGTERM] = signal.SIG_IGN
        super().__exit__(kind, error, traceback)

    def _tell(self, received: signal.Signals) -> None:
        if self._ranks.size == 1:
            super()._tell(received)  # Of several ranks the first one says it, once, when all of them know.
