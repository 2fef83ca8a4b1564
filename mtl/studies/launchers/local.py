"""Runs in processes of this machine, several at a time, each with GPUs or a share of the cores of its own."""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.runtime.machine import usable_cores
from mtl.studies.expand import PlannedRun
from mtl.studies.launchers import Ended, Start
from mtl.studies.launchers.worker import start_worker


class LocalLauncher:
    """``python -m mtl run`` for each run, in as many processes at a time as there are ``places``."""

    def __init__(self, places: "Sequence[Place]", plugins: Sequence[str] = ()) -> None:
        self._free = list(places)
        self._plugins = plugins
        self._working: dict[Path, tuple[subprocess.Popen[bytes], Place]] = {}

    def room(self) -> int:
        return len(self._free)

    def takes_over(self, directory: Path) -> bool:
        return False

    def start(self, start: Start) -> None:
        place = self._free.pop(0)
        process = start_worker(start.config, start.run.directory, self._plugins, place.environment())
        self._working[start.run.directory] = (process, place)

    def queued(self) -> frozenset[Path]:
        return frozenset()

    def ended(self) -> list[Ended]:
        found = []
        for directory, (process, place) in list(self._working.items()):
            code = process.poll()
            if code is not None:
                del self._working[directory]
                self._free.append(place)
                found.append(Ended(directory, code))
        return found

    def stop(self) -> None:
        for process, _ in self._working.values():
            process.send_signal(signal.SIGTERM)
        for process, _ in self._working.values():
            process.wait()


@dataclass(frozen=True)
class Place:
    """What one process at a time has for itself: GPUs by their names, or threads."""

    gpus: tuple[str, ...] = ()
    threads: int | None = None

    def environment(self) -> dict[str, str]:
        """What is set for the process that takes the place."""
        own = {"CUDA_VISIBLE_DEVICES": ",".join(self.gpus)} if self.gpus else {}
        return own | ({} if self.threads is None else {"OMP_NUM_THREADS": str(self.threads)})


def places_for(runs: Sequence[PlannedRun], workers: int | None, runs_per_device: int) -> list[Place]:
    """A place for each of ``workers`` processes on this machine.

    Where the runs use GPUs, each place has as many of them as ``training.devices`` says, at most ``runs_per_device``
    places share one, and by default there are as many places as that allows. On a CPU there are by default as many as
    have a core for each of the threads that ``training.threads`` says, one where it does not; the cores are shared out
    equally, unless OMP_NUM_THREADS says what each process is to take.
    """
    gpus = _visible_gpus() if any(_may_use_gpu(run.config) for run in runs) else []
    if not gpus:
        cores = usable_cores() or 1
        count = workers or _most_at_once(runs, cores)
        share = max(1, cores // count)
        return [Place(threads=None if "OMP_NUM_THREADS" in os.environ else share)] * count
    each = max(run.config.training.devices for run in runs)
    groups = [tuple(gpus[first : first + each]) for first in range(0, len(gpus) - each + 1, each)]
    # The GPUs in turn, so that few workers do not share one while another is idle.
    places = [Place(gpus=group) for _ in range(runs_per_device) for group in groups]
    if len(places) < (workers or 1):
        raise ConfigError(
            f"--workers {workers or 1} needs {each} of the {len(gpus)} GPUs for each, with {runs_per_device} a GPU: "
            "lower it, raise --runs-per-device, or set training.device=cpu"
        )
    return places[:workers]


def _most_at_once(runs: Sequence[PlannedRun], cores: int) -> int:
    """How many of the runs, any of them, find a core for each of their threads; a run that sets none takes all."""
    settings = [run.config.training for run in runs]
    each = max(training.devices * (training.threads or cores) for training in settings)
    return min(len(runs), max(1, cores // each))


def _may_use_gpu(config: RunConfig) -> bool:
    return config.training.device != "cpu"


def _visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES would name them."""
    # Only here, since whoever trains on CPUs starts sooner without it.
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(number) for number in range(count)] if named is None else named.split(",")[:count]
