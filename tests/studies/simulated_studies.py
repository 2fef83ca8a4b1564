"""Studies that never took place: two arms, several seeds, the same examples, and a difference that is known."""

from dataclasses import dataclass

import numpy as np

from mtl import tasks
from mtl.studies.statistics.difference import Estimate, ExampleDraw, difference
from mtl.studies.statistics.resampling import accuracy_covariance, resampled_scores
from mtl.studies.statistics.seeds import Pairing

EXAMPLES = 120
RESAMPLES = 60
SPECS = {name: tasks.get(f"glue/{task}") for name, task in (("matthews", "cola"), ("pearson", "stsb"))}
# STS-B's primary score is a mean of two correlations, of which the slower one is simulated.
SPECS["spearman"] = SPECS["pearson"].model_copy(update={"primary": ("spearman",)})


@dataclass(frozen=True)
class Sizes:
    """Standard deviations of what moves a latent score: the example itself, the example in this arm (another draw of
    examples), the seed, and the example in this seed. ``shared`` is the seed's part that both arms have.
    """

    example: float = 1.0
    arm: float = 0.3
    seed: float = 0.15
    noise: float = 0.4
    shared: float = 0.0


def latent(studies: int, seeds: int, sizes: Sizes, gain: float, random: np.random.Generator) -> np.ndarray:
    """How easy each example is to each run (studies, 2, seeds, examples), and easier by ``gain`` to the second arm."""
    shape = (studies, 2, seeds, EXAMPLES)
    found = sizes.example * random.normal(size=(studies, 1, 1, EXAMPLES))
    found = found + sizes.arm * random.normal(size=(studies, 2, 1, EXAMPLES))
    found = found + sizes.seed * random.normal(size=(studies, 2, seeds, 1))
    found = found + sizes.shared * random.normal(size=(studies, 1, seeds, 1))
    found = found + sizes.noise * random.normal(size=shape)
    found[:, 1] += gain
    return found


def estimates(
    metric: str, studies: int, seeds: int, sizes: Sizes, *, gain: float, pairing: Pairing, random: np.random.Generator
) -> Estimate:
    """The differences found in all studies."""
    easy = latent(studies, seeds, sizes, gain, random).reshape(studies, 2 * seeds, EXAMPLES)
    if metric == "accuracy":
        right = (easy > -0.7).astype(np.float64)
        scores, covariance = 100 * right.mean(axis=-1), accuracy_covariance(right)
    else:
        found = [of_study(metric, each, random) for each in easy]
        scores, covariance = (np.stack(part) for part in zip(*found, strict=True))
    draw = ExampleDraw(covariance, EXAMPLES)
    return difference(scores[:, :seeds], scores[:, seeds:], [draw], pairing)


def of_study(metric: str, easy: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Scores (R,) of the runs of one study, and their covariance (R, R) under the draw of examples."""
    spec = SPECS[metric]
    if metric == "matthews":
        labels = random.integers(0, 2, size=EXAMPLES)
        predictions = np.where(easy > -0.7, labels, 1 - labels)
    else:
        labels = random.normal(size=EXAMPLES)
        # Whether the error points up or down is the example's own; its size falls with ease.
        error = np.where(random.integers(0, 2, size=EXAMPLES) == 1, 1.0, -1.0)
        predictions = labels + error * np.logaddexp(0.0, -easy)
    observed = resampled_scores(spec, predictions, labels, _Everything(), 1)[0]
    resampled = resampled_scores(spec, predictions, labels, random, RESAMPLES)
    return observed, np.cov(resampled, rowvar=False)


class _Everything(np.random.Generator):
    """Draws each example once, so that the score of a resample is the score itself."""

    def __init__(self) -> None:
        super().__init__(np.random.Philox(0))

    def integers(self, low: int, *, size: int) -> np.ndarray:  # type: ignore[override]
        return np.arange(size)
