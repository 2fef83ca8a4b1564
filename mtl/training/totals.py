"""What a training has used so far: examples by task and update, tokens, operations and seconds."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import JsonValue
from torch import Tensor

from mtl.records import CostRecord
from mtl.sampling.samplers import IntArray
from mtl.training.flops import FlopCounter
from mtl.training.prepared import PreparedUpdate


class Totals:
    """Running sums over the updates of one training, continued over resumes."""

    def __init__(self, tasks: tuple[str, ...], counter: FlopCounter) -> None:
        self.tasks, self._counter = tasks, counter
        self.cursors: IntArray = np.zeros(len(tasks), dtype=np.int64)
        self.tokens, self.flops = 0, 0.0
        self._counts: list[IntArray] = []
        self._seconds_before, self._since = 0.0, time.monotonic()

    @property
    def updates(self) -> int:
        """Updates done."""
        return len(self._counts)

    @property
    def examples(self) -> int:
        """Examples trained on, repeats counted."""
        return int(self.cursors.sum())

    @property
    def seconds(self) -> float:
        """Wall time of the training, evaluations included, time between a stop and its resume not."""
        return self._seconds_before + time.monotonic() - self._since

    def add(self, update: PreparedUpdate) -> None:
        """Count an update that was run."""
        self._counts.append(update.counts)
        self.cursors = self.cursors + update.counts
        self.tokens += int(update.tokens.sum())
        self.flops += self._counter.training(update.work)

    def cost(self, inherited: Mapping[str, CostRecord]) -> CostRecord:
        """The record of what was spent; ``inherited`` by the stages this training started from."""
        return CostRecord(
            updates=self.updates,
            examples=self.examples,
            tokens=self.tokens,
            flops=self.flops,
            seconds=self.seconds,
            inherited=dict(inherited),
        )

    def write_sequence(self, path: Path) -> None:
        """The realised task sequence: ``task_names``, ``counts`` (updates, K) and ``cursors`` (K,)."""
        counts = np.stack(self._counts) if self._counts else np.zeros((0, len(self.tasks)), dtype=np.int64)
        np.savez(path, task_names=np.array(self.tasks), counts=counts, cursors=self.cursors)

    def state_dict(self) -> dict[str, JsonValue]:
        """The sums as plain data; the sequence is in :meth:`state_tensors`."""
        return {"tokens": self.tokens, "flops": self.flops, "seconds": self.seconds}

    def state_tensors(self) -> dict[str, Tensor]:
        """Examples of each task in each update so far, (updates, K) int32."""
        counts = np.stack(self._counts) if self._counts else np.zeros((0, len(self.tasks)), dtype=np.int64)
        return {"counts": torch.from_numpy(counts.astype(np.int32))}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Continue from saved sums and sequence."""
        self._counts = list(tensors["counts"].numpy().astype(np.int64))
        self.cursors = tensors["counts"].numpy().astype(np.int64).sum(axis=0)
        self.tokens, self.flops = int(state["tokens"]), float(state["flops"])
        self._seconds_before, self._since = float(state["seconds"]), time.monotonic()
