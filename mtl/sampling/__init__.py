"""Which task comes when: pure functions of seed, sizes and the number of the update. No torch."""

from mtl.sampling.probabilities import power_probabilities, task_probabilities
from mtl.sampling.registry import make_sampler, register_sampler
from mtl.sampling.samplers import Sampler

__all__ = ["Sampler", "make_sampler", "power_probabilities", "register_sampler", "task_probabilities"]
