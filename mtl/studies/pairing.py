"""Whether two runs belong together by more than the number of their seed."""

from collections.abc import Sequence

from mtl.studies.find import FoundRun
from mtl.studies.scored_arms import Arm
from mtl.studies.sequences import sequences
from mtl.studies.statistics.seeds import Pairing

FEWEST_PAIRS = 5
"""Under five pairs the variance of their differences has so few degrees of freedom that its sum with that of the
examples is off: in simulated studies 3 pairs find 6 to 8% differences that are none, 5 pairs 5.0 to 5.5%."""


def pairing_of(first: Arm, second: Arm, tasks: Sequence[str]) -> Pairing:
    """``paired`` where at least five runs a side have the same seeds and were trained on the same sequence, else Welch.

    The sequence is the same where, for each seed and each of ``tasks``, all trainings of the run that led to the score
    drew as many examples of the same tasks in each update (``sequence.npz``), from as many rows; which rows these are
    follows from the seed. Without a ``sequence.npz`` nothing is known to be shared. What weights of another run had
    drawn is not looked at: pairs that have less in common cost power, and find no more that is not there.
    """
    for task in tasks:
        ones, others = first.scoring(task), second.scoring(task)
        if [run.result.seed for run in ones] != [run.result.seed for run in others] or len(ones) < FEWEST_PAIRS:
            return "Welch"
        for one, other in zip(ones, others, strict=True):
            if not _same_sequence(first, one, second, other, task):
                return "Welch"
    return "paired"


def _same_sequence(first: Arm, one: FoundRun, second: Arm, other: FoundRun, task: str) -> bool:
    if first.record(one).tasks[task].train_rows != second.record(other).tasks[task].train_rows:
        return False
    ones, others = sequences(first, one, task), sequences(second, other, task)
    return len(ones) == len(others) and all(
        before is not None and after is not None and before.equals(after)
        for before, after in zip(ones, others, strict=True)
    )
