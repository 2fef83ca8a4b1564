"""Runs in this process, one after the other."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mtl.errors import MtlError, StoppedError
from mtl.rundir import RunDirectory
from mtl.stages.devices import run_on_devices
from mtl.studies.launchers import Ended, Start

_logger = logging.getLogger("mtl")


class InlineLauncher:
    """Starts a run by carrying it out. A signal ends the study by the run's own StoppedError.

    What runs say goes to their log.txt. A fault of the program itself is raised, and so ends the study.
    """

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self._plugins = plugins
        self._ended: list[Ended] = []

    def room(self) -> int:
        return 0 if self._ended else 1

    def takes_over(self, directory: Path) -> bool:
        return False

    def start(self, start: Start) -> None:
        run = RunDirectory(start.run.directory)
        run.path.mkdir(parents=True, exist_ok=True)
        with _messages_in(run.log):
            try:
                run_on_devices(start.run.config, resume=run.config.is_file(), plugins=self._plugins)
            except StoppedError:
                raise
            except MtlError as error:
                if not error.reported_elsewhere:
                    _logger.error("%s", error)
                code = error.exit_code
            else:
                code = 0
        self._ended.append(Ended(run.path, code))

    def queued(self) -> frozenset[Path]:
        return frozenset()

    def ended(self) -> list[Ended]:
        found, self._ended = self._ended, []
        return found

    def stop(self) -> None:
        pass  # Whenever this can be called, no run is at work.


@contextmanager
def _messages_in(path: Path) -> Iterator[None]:
    """The package's messages, added to a file instead of where they went before."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handlers, level, propagated = _logger.handlers[:], _logger.level, _logger.propagate
    _logger.handlers = [handler]
    _logger.setLevel(logging.INFO)
    _logger.propagate = False
    try:
        yield
    finally:
        _logger.handlers = handlers
        _logger.setLevel(level)
        _logger.propagate = propagated
        handler.close()
