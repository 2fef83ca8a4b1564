"""What the scores of an arm had cost, in three currencies, none of which is time."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mtl.records import CostRecord
from mtl.studies.scored_arms import Arm
from mtl.studies.sequences import sequences


@dataclass(frozen=True)
class ArmCost:
    """Means over an arm's runs of all its training, what it started from included once.

    ``target_examples`` counts the examples of the tasks compared, each task's own, repeats counted; None where there is
    no such task, as among single-task arms of several, or the runs' files do not tell (no ``sequence.npz``, or weights
    from another run).
    """

    tokens: float
    target_examples: float | None
    flops: float


def arm_cost(arm: Arm, tasks: Sequence[str]) -> ArmCost:
    """What ``arm`` had cost when it was scored on ``tasks``."""
    totals = [list(spent(arm.record(run).cost)) for run in arm.runs]
    return ArmCost(
        tokens=statistics.fmean(sum(part.tokens for part in parts) for parts in totals),
        target_examples=_target_examples(arm, tasks),
        flops=statistics.fmean(sum(part.flops for part in parts) for parts in totals),
    )


def spent(cost: CostRecord) -> Iterator[CostRecord]:
    """The cost itself and all it inherited at any depth; what two of them inherited alike comes once."""
    seen: list[tuple[str, CostRecord]] = []
    waiting = list(cost.inherited.items())
    yield cost
    while waiting:
        part = waiting.pop()
        if part not in seen:
            seen.append(part)
            waiting += part[1].inherited.items()
            yield part[1]


def _target_examples(arm: Arm, tasks: Sequence[str]) -> float | None:
    if not tasks:
        return None
    counts = []
    for run in arm.runs:
        if any(name != "joint" for name in arm.record(run).cost.inherited):
            return None
        total = 0
        for task in tasks:
            for sequence in sequences(arm, run, task):
                if sequence is None:
                    return None
                total += sequence.examples(task)
        counts.append(total)
    return statistics.fmean(counts)
