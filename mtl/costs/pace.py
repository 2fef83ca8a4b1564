"""How long work takes and how much memory, on the machine that was measured or on a GPU that is only known by name."""

from dataclasses import dataclass
from typing import Protocol

from mtl.costs.gpus import ADAMW_BYTES, Gpu
from mtl.costs.machine import TRAINED_BYTES, MachineProfile
from mtl.costs.work import Work

_WEIGHT_BYTES = 4


@dataclass(frozen=True)
class Footprint:
    """What memory follows from: parameters of encoder and heads, the largest micro-batch, the largest evaluation batch.

    ``sizes``: how many different numbers of rows the encoder runs on; a CPU's matrix products are compiled for each of
    them, and what is compiled is kept.
    """

    encoder: int
    heads: int
    largest: Work
    widest: float
    evaluation_scores: float
    sizes: float


class Pace(Protocol):
    """How long work takes somewhere, and how much memory."""

    def training_seconds(self, work: Work, flops: float, updates: float, parameters: float) -> float:
        """Of so many updates of ``work`` and useful ``flops`` together."""
        ...

    def evaluation_seconds(self, work: Work, flops: float, batches: float, parameters: float) -> float:
        """Of so many batches together."""
        ...

    def memory(self, footprint: Footprint) -> float:
        """The most at any time: in the largest update, or in an evaluation batch."""
        ...


@dataclass(frozen=True)
class OnMachine:
    """As a machine was measured."""

    profile: MachineProfile

    def training_seconds(self, work: Work, flops: float, updates: float, parameters: float) -> float:
        return self.profile.training_seconds(work)

    def evaluation_seconds(self, work: Work, flops: float, batches: float, parameters: float) -> float:
        return self.profile.evaluation_seconds(work)

    def memory(self, footprint: Footprint) -> float:
        fixed = self.profile.fixed_bytes(footprint.encoder, footprint.heads)
        largest = footprint.largest
        sizes = {"base": 1.0, "sizes": footprint.sizes}
        kept = {**sizes, "elements": largest.elements, "scores": largest.scores}
        passing = {**sizes, "widest": footprint.widest, "scores": footprint.evaluation_scores}
        return fixed + max(self.profile.training_memory.predict(kept), self.profile.evaluation_memory.predict(passing))


@dataclass(frozen=True)
class OnGpu:
    """As a datasheet lets expect."""

    gpu: Gpu

    def training_seconds(self, work: Work, flops: float, updates: float, parameters: float) -> float:
        return self.gpu.seconds(flops, ADAMW_BYTES * parameters * updates)

    def evaluation_seconds(self, work: Work, flops: float, batches: float, parameters: float) -> float:
        return self.gpu.seconds(flops, _WEIGHT_BYTES * parameters * batches)

    def memory(self, footprint: Footprint) -> float:
        kept = self.gpu.training_bytes(footprint.largest.elements, footprint.largest.scores)
        passing = self.gpu.evaluation_bytes(footprint.widest)
        return TRAINED_BYTES * (footprint.encoder + footprint.heads) + max(kept, passing)
