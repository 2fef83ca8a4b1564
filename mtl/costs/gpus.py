"""Named GPUs, and what a training would take on one: an estimate from operations and bytes, not a measurement."""

from dataclasses import dataclass

from mtl.errors import ConfigError

REACHED = 0.35
"""The share of the datasheet's operations a second that a training is assumed to reach."""
ADAMW_BYTES = 28
"""Read and written for each parameter by a step in fp32: gradient, weight and two moments in, the last three out."""
# Korthikanti et al. (2022), equation 1: bytes kept for a backward pass in 16 bits with dropout, for each number of a
# layer's hidden states and for each of its attention weights.
_ELEMENT_BYTES, _SCORE_BYTES = 34, 5
# What a forward pass alone holds, in 16 bits.
_WIDE_BYTES = 2


@dataclass(frozen=True)
class Gpu:
    """Datasheet figures: dense bf16 operations and bytes of memory traffic a second, and memory in bytes."""

    title: str
    flops_per_second: float
    bytes_per_second: float
    memory_bytes: float

    def seconds(self, flops: float, moved: float) -> float:
        """Expected time: that of the operations or that of the traffic, whichever is longer."""
        return max(flops / (REACHED * self.flops_per_second), moved / self.bytes_per_second)

    def training_bytes(self, elements: float, scores: float) -> float:
        """Expected memory of what is kept for a backward pass."""
        return _ELEMENT_BYTES * elements + _SCORE_BYTES * scores

    def evaluation_bytes(self, wide: float) -> float:
        """Expected memory of a forward pass alone."""
        return _WIDE_BYTES * wide


GPUS = {
    # NVIDIA A100 Tensor Core GPU datasheet, A100 80GB SXM, BFLOAT16 without sparsity.
    "a100-80": Gpu("A100 80GB", 312e12, 2039e9, 80e9),
    # NVIDIA H100 Tensor Core GPU datasheet, H100 SXM; half of the figure that it gives with sparsity.
    "h100": Gpu("H100", 989.5e12, 3.35e12, 80e9),
    # NVIDIA H200 Tensor Core GPU datasheet, H200 SXM; half of the figure that it gives with sparsity.
    "h200": Gpu("H200", 989.5e12, 4.8e12, 141e9),
    # NVIDIA Ada GPU Architecture white paper, appendix A: BF16 with FP32 accumulate, without sparsity.
    "4090": Gpu("GeForce RTX 4090", 165.2e12, 1008e9, 24e9),
    # NVIDIA L4 Tensor Core GPU datasheet; half of the figure that it gives with sparsity.
    "l4": Gpu("L4", 121e12, 300e9, 24e9),
}


def gpu_called(name: str) -> Gpu:
    """The GPU of that name, in any case; ConfigError where none is."""
    if name.lower() not in GPUS:
        raise ConfigError(f"--gpu {name}: known are {', '.join(GPUS)}")
    return GPUS[name.lower()]
