"""The log of a training: one JSON record a line, and the same as TensorBoard events."""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import JsonValue
from torch import Tensor

from mtl.sampling.samplers import IntArray
from mtl.training.update import UpdateResult

logger = logging.getLogger("mtl")


class TrainingLog(Protocol):
    """Where a training's records go."""

    @property
    def length(self) -> int:
        """Bytes written so far."""
        ...

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One record after ``step`` updates."""
        ...

    def hyperparameters(self, settings: Mapping[str, str | float], scores: Mapping[str, float]) -> None:
        """Settings and final scores."""
        ...

    def close(self) -> None:
        """No record comes any more."""
        ...


class SilentLog:
    """The log of a rank that does not write."""

    length = 0

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Nothing."""

    def hyperparameters(self, settings: Mapping[str, str | float], scores: Mapping[str, float]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class MetricsLog:
    """Appends records to ``metrics.jsonl``; a resumed run cuts the file to the length its checkpoint remembers."""

    def __init__(self, path: Path, tensorboard: Path | None, *, keep_bytes: int, step: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._file = path.open("r+b")
        found = self._file.seek(0, 2)
        if found < keep_bytes:
            # Cutting a file to more than its length would fill it with zero bytes.
            logger.warning("%s lost its end: %d bytes are left of %d; the log goes on there", path, found, keep_bytes)
            keep_bytes = _length_of_whole_lines(path)
        self._file.truncate(keep_bytes)
        self._file.seek(0, 2)
        self._events: Any = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter

            # Purging drops this step and all after it; the record after ``step`` updates stays.
            self._events = SummaryWriter(str(tensorboard), purge_step=step + 1)

    @property
    def length(self) -> int:
        """Bytes written so far, all of them flushed."""
        return self._file.tell()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One record after ``step`` updates. A value that is not finite is the string "NaN", "Infinity" or "-Infinity".

        JSON has no such numbers; Python's ``float`` reads these strings.
        """
        record = {"step": step, **{name: _json_number(value) for name, value in values.items()}}
        self._file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        self._file.flush()
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)

    def hyperparameters(self, settings: Mapping[str, str | float], scores: Mapping[str, float]) -> None:
        """Settings and final scores for TensorBoard's table of runs."""
        if self._events is not None:
            self._events.add_hparams(dict(settings), dict(scores), run_name=".")

    def close(self) -> None:
        """Write out what TensorBoard still holds."""
        self._file.close()
        if self._events is not None:
            self._events.close()


class LossWindow:
    """Means over the updates since the last record: losses, weights and gradient norm.

    Tensors stay on the device until a record is due, so logging does not make the host wait at every update.
    """

    def __init__(self, tasks: Sequence[str]) -> None:
        self._tasks = tuple(tasks)
        self._pending: list[tuple[IntArray, Tensor, Tensor, Tensor]] = []
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, result: UpdateResult) -> None:
        """Take an update into the window."""
        # Not the result itself, which would keep its batches.
        self._pending.append((result.update.counts, result.losses, result.weights, result.gradient_norm))

    def take(self) -> dict[str, float]:
        """The means by log name, and an empty window."""
        self._settle()
        means = {name: self._sums[name] / count for name, count in self._counts.items()}
        self._sums, self._counts = {}, {}
        return means

    def state_dict(self) -> dict[str, JsonValue]:
        """Plain data; the window continues from it."""
        self._settle()
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a window that :meth:`state_dict` described."""
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])

    def _settle(self) -> None:
        for counts, losses_K, weights_K, norm in self._pending:
            losses, weights = losses_K.tolist(), weights_K.tolist()
            for number, task in enumerate(self._tasks):
                if counts[number]:
                    self._count(f"train/{task}/loss", losses[number])
                    self._count(f"train/{task}/weight", weights[number])
            self._count("gradient/norm", float(norm))
        self._pending.clear()

    def _count(self, name: str, value: float) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + value
        self._counts[name] = self._counts.get(name, 0) + 1


def _json_number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _length_of_whole_lines(path: Path) -> int:
    return path.read_bytes().rfind(b"\n") + 1


def synchronise(device: torch.device) -> None:
    """Wait for the device, so that a clock read next covers the work given to it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
