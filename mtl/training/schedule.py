"""The learning rate over the training, as a pure function of the update's number."""

import math

from mtl.config.training import OptimizerSettings


def learning_rate_factor(step: int, total: int, settings: OptimizerSettings) -> float:
    """What the learning rate of update ``step`` (0-based) of ``total`` is multiplied by, between 0 and 1.

    Rises from 0 over the first ``ceil(warmup * total)`` updates (a single one has factor 1), then falls to 0 in a line
    or half a cosine, or stays.
    The same convention as transformers' ``get_linear_schedule_with_warmup``: the first warm-up update has factor 0.
    """
    warm = math.ceil(settings.warmup * total) if total > 1 else 0
    if step < warm:
        return step / warm
    if settings.decay == "constant":
        return 1.0
    progress = (step - warm) / max(1, total - warm)
    return 1.0 - progress if settings.decay == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
