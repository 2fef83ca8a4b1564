"""Whether two models differ on the same examples by more than the draw of examples would explain.

N examples, C classes, P permutations. Both tests are about one trained model of each kind: they know nothing of how
either would vary with another seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mtl.errors import ConfigError
from mtl.random_streams import generator
from mtl.studies.statistics.confusion import of_confusion
from mtl.tasks.spec import MetricName, TaskSpec

PERMUTATIONS = 10_000
TestName = Literal["McNemar, exact", "approximate randomisation"]

Numbers = npt.NDArray[Any]
Scores = npt.NDArray[np.float64]

_CHUNK_ELEMENTS = 1 << 22
_SEED = 0


@dataclass(frozen=True)
class Pair:
    """Predictions of both models (N,) for the examples of one split, and their labels (N,): class indices or scores."""

    first: Numbers
    second: Numbers
    labels: Numbers


@dataclass(frozen=True)
class TestResult:
    """The two-sided p-value and the name of the test it is from."""

    __test__ = False  # Its name is no sign to pytest.

    test: TestName
    p_value: float


def paired_test(spec: TaskSpec, pairs: Sequence[Pair], *, permutations: int = PERMUTATIONS) -> TestResult:
    """The test for the primary score of ``spec``, over one pair for each split that the score is the mean of.

    Exact McNemar where that score is accuracy alone, the splits' examples taken together; else approximate
    randomisation of the score itself. ConfigError for a metric of which neither can be told from predictions.
    """
    if spec.primary == ("accuracy",):
        better = sum(int(np.count_nonzero(_right(pair)[0] & ~_right(pair)[1])) for pair in pairs)
        worse = sum(int(np.count_nonzero(~_right(pair)[0] & _right(pair)[1])) for pair in pairs)
        return TestResult("McNemar, exact", mcnemar(better, worse))
    return TestResult("approximate randomisation", randomisation(spec, pairs, permutations=permutations))


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value from the numbers of examples that only one model gets right; 1 where there is none.

    McNemar 1947, "Note on the sampling error of the difference between correlated proportions", with the binomial
    distribution in place of its approximation.
    """
    from scipy import stats

    discordant = only_first + only_second
    return float(stats.binomtest(only_first, discordant, 0.5).pvalue) if discordant else 1.0


def randomisation(spec: TaskSpec, pairs: Sequence[Pair], *, permutations: int = PERMUTATIONS) -> float:
    """Two-sided p-value of the difference in primary score, both predictions of an example swapped at random.

    The share of the ``permutations`` whose difference is as large as the one observed, that one counted among them,
    so that no p-value is below 1 / (P + 1). The random stream is fixed: equal predictions give equal p-values.
    Noreen 1989, "Computer-intensive methods for testing hypotheses", chapter 2.
    """
    random = generator(_SEED, "compare", spec.name)
    differences = _mean([_differences(spec, pair, permutations, random) for pair in pairs])
    observed, drawn = abs(differences[0]), np.abs(differences[1:])
    # Sums in another order differ in their last digits, which must not make a tie an improvement.
    extreme = int(np.count_nonzero(drawn >= observed - 1e-9))
    return (extreme + 1) / (permutations + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for being several, in the same order; each at most 1.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def _mean(scores: Sequence[Scores]) -> Scores:
    return np.asarray(np.mean(scores, axis=0), dtype=np.float64)


def _right(pair: Pair) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    return pair.first == pair.labels, pair.second == pair.labels


def _differences(spec: TaskSpec, pair: Pair, permutations: int, random: np.random.Generator) -> Scores:
    """Primary score of the first model less the second's (P+1,): as observed, then once for each permutation."""
    if spec.kind == "classification":
        return _of_counts(spec, pair, permutations, random)
    return _of_scores(spec, pair, permutations, random)


def _of_counts(spec: TaskSpec, pair: Pair, permutations: int, random: np.random.Generator) -> Scores:
    """Of classes. Examples with the same label and the same two predictions are alike, so it is enough to draw how
    many of them are swapped, which is binomial.
    """
    classes = spec.outputs
    kinds, numbers = np.unique(np.stack([pair.labels, pair.first, pair.second]), axis=1, return_counts=True)
    first = np.zeros((permutations + 1, classes, classes), dtype=np.int64)
    second = np.zeros_like(first)
    for (label, one, other), number in zip(kinds.T, numbers, strict=True):
        swapped = np.concatenate([[0], random.binomial(number, 0.5, size=permutations)])
        first[:, label, one] += number - swapped
        first[:, label, other] += swapped
        second[:, label, other] += number - swapped
        second[:, label, one] += swapped
    differences = [of_confusion(name, spec, first) - of_confusion(name, spec, second) for name in spec.primary]
    return _mean(differences)


def _of_scores(spec: TaskSpec, pair: Pair, permutations: int, random: np.random.Generator) -> Scores:
    """Of scores: every permutation is carried out, some thousand at a time as memory allows."""
    first, second = pair.first.astype(np.float64), pair.second.astype(np.float64)
    correlations = [_correlation(name, spec) for name in spec.primary]
    labels = pair.labels.astype(np.float64)
    chunk = max(1, _CHUNK_ELEMENTS // len(labels))
    found = [_score_difference(correlations, first[None], second[None], labels)]
    for start in range(0, permutations, chunk):
        swapped = random.integers(0, 2, size=(min(chunk, permutations - start), len(labels)), dtype=np.int8) == 1
        one, other = np.where(swapped, second, first), np.where(swapped, first, second)
        found.append(_score_difference(correlations, one, other, labels))
    return np.concatenate(found)


Correlation = Callable[[Numbers, Numbers], Scores]


def _score_difference(correlations: Sequence[Correlation], one: Numbers, other: Numbers, labels: Numbers) -> Scores:
    return _mean([correlate(one, labels) - correlate(other, labels) for correlate in correlations])


def _correlation(name: MetricName, spec: TaskSpec) -> Correlation:
    if name == "pearson":
        return _pearson
    if name == "spearman":
        return _spearman
    raise ConfigError(f"{spec.name}: there is no paired test for metric {name!r}; leave the task out with --task")


def _pearson(values_PN: Numbers, labels: Numbers) -> Scores:
    """Correlation of each row with the labels; 0 where one side is constant."""
    centred, target = values_PN - values_PN.mean(axis=1, keepdims=True), labels - labels.mean()
    scale = np.sqrt((centred**2).sum(axis=1) * (target**2).sum())
    constant = (values_PN == values_PN[:, :1]).all(axis=1) | bool((labels == labels[0]).all())
    return np.where(constant, 0.0, centred @ target / np.where(constant | (scale == 0), 1.0, scale))


def _spearman(values_PN: Numbers, labels: Numbers) -> Scores:
    from scipy import stats

    return _pearson(stats.rankdata(values_PN, axis=1), stats.rankdata(labels))
