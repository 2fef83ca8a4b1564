"""The promises of the statistics, held against 1,000 simulated studies each; seeds and examples vary in all of them."""

import numpy as np
import pytest
from scipy import stats
from simulated_studies import Sizes, estimates

from mtl.studies.statistics.detectable import minimum_detectable_difference, power
from mtl.studies.statistics.difference import LEVEL
from mtl.studies.statistics.seeds import Pairing

STUDIES = 1000
METRICS = ("accuracy", "matthews", "spearman")


def within_simulation_error(found: int, chance: float, *, slack: float = 0.0) -> bool:
    """Whether so many of ``STUDIES`` can come of a ``chance`` off by ``slack`` at most: exact binomial, 99.9%."""
    low, high = max(0.0, chance - slack), min(1.0, chance + slack)
    return bool(stats.binom.ppf(0.0005, STUDIES, low) <= found <= stats.binom.ppf(0.9995, STUDIES, high))


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("metric", METRICS)
def test_arms_that_do_not_differ_are_called_different_in_one_study_of_twenty(metric: str, seeds: int) -> None:
    random = np.random.default_rng(seeds)
    found = estimates(metric, STUDIES, seeds, Sizes(), gain=0.0, pairing="Welch", random=random)
    assert within_simulation_error(int((found.p_value < LEVEL).sum()), LEVEL)
    # An interval leaves out 0 exactly where the test rejects it.
    np.testing.assert_array_equal(found.p_value < LEVEL, (found.low > 0) | (found.high < 0))


@pytest.mark.parametrize(
    ("seeds", "sizes"),
    [
        (3, Sizes(seed=0.3, arm=0.1)),  # Mostly seeds.
        (3, Sizes(seed=0.02, arm=0.5)),  # Mostly examples.
        (10, Sizes(seed=0.02, arm=0.05, noise=0.8)),  # Mostly the seeds' disagreement about single examples.
    ],
)
def test_whichever_variance_is_the_larger(seeds: int, sizes: Sizes) -> None:
    random = np.random.default_rng(17)
    found = estimates("accuracy", STUDIES, seeds, sizes, gain=0.0, pairing="Welch", random=random)
    assert within_simulation_error(int((found.p_value < LEVEL).sum()), LEVEL, slack=0.01)


@pytest.mark.parametrize("seeds", [5, 10])
def test_paired_runs_that_share_a_part_of_the_seed(seeds: int) -> None:
    rejected = {}
    pairings: tuple[Pairing, ...] = ("paired", "Welch")
    for pairing in pairings:
        random = np.random.default_rng(seeds)
        found = estimates("accuracy", STUDIES, seeds, Sizes(shared=0.2), gain=0.0, pairing=pairing, random=random)
        rejected[pairing] = int((found.p_value < LEVEL).sum())
    assert within_simulation_error(rejected["paired"], LEVEL)
    assert rejected["Welch"] < rejected["paired"], "what is shared counts as noise there, so that it finds less"


@pytest.mark.parametrize(
    ("metric", "seeds", "gain"), [("accuracy", 5, 0.4), ("accuracy", 10, 0.3), ("matthews", 5, 0.4)]
)
def test_a_known_difference_is_found_as_often_as_promised(metric: str, seeds: int, gain: float) -> None:
    random = np.random.default_rng(seeds)
    found = estimates(metric, STUDIES, seeds, Sizes(), gain=gain, pairing="Welch", random=random)
    truth, error, degrees = found.difference.mean(), found.difference.std(), np.median(found.degrees)
    promised = float(power(truth, error, degrees, LEVEL))
    assert within_simulation_error(int((found.p_value < LEVEL).sum()), promised, slack=0.02)
    inside = int(((found.low <= truth) & (truth <= found.high)).sum())
    assert within_simulation_error(inside, 1 - LEVEL, slack=0.01)


@pytest.mark.parametrize(("seeds", "gain"), [(5, 0.37), (10, 0.27)])
def test_the_minimum_detectable_difference_is_what_80_percent_of_studies_find(seeds: int, gain: float) -> None:
    random = np.random.default_rng(seeds)
    found = estimates("accuracy", STUDIES, seeds, Sizes(), gain=gain, pairing="Welch", random=random)
    detectable = minimum_detectable_difference(found.standard_error, found.degrees, LEVEL)
    truth = found.difference.mean()
    assert truth == pytest.approx(np.median(detectable), rel=0.07), "the gain was chosen to be just detectable"
    assert within_simulation_error(int((found.p_value < LEVEL).sum()), 0.8, slack=0.03)
    missed = found.p_value >= LEVEL
    assert (detectable[missed] > np.abs(found.difference[missed])).all()
