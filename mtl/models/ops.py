"""The one place through which this project's own layers apply weights.

Whatever is done per application of a weight (gradients split by task, low-precision copies) is done here once.
Letters: D input width, E output width.
"""

import torch.nn.functional as F
from torch import Tensor


def linear(inputs: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
    """``inputs (..., D) -> (..., E)``: inputs times the transposed weight, plus the bias."""
    return F.linear(inputs, weight_ED, bias_E)
