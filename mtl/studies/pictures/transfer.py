"""What training with one other task does to a task: auxiliary by target, the transfer matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from mtl.errors import ConfigError
from mtl.records import StageName
from mtl.studies.comparable import Kind, check_comparable
from mtl.studies.comparisons import Comparison, Row, compare_pairs
from mtl.studies.example_draws import task_draw
from mtl.studies.pictures.picture import Drawing, Source
from mtl.studies.scored_arms import Arm
from mtl.studies.table import in_suite_order
from mtl.tasks import registry

if TYPE_CHECKING:
    from collections.abc import Collection

_PAIR = 2


@dataclass(frozen=True)
class TransferCell:
    """``target`` trained together with ``auxiliary`` against ``target`` alone, mean scores and their difference.

    ``low`` to ``high`` is the uncorrected 95% interval, ``p_adjusted`` by Holm over the whole matrix, in all stages.
    None where there is no such arm, or, of what a test gives, no test, for the reason ``untested``.
    """

    stage: StageName
    auxiliary: str
    target: str
    alone: float | None
    together: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_adjusted: float | None
    distinguishable: bool
    detectable: float | None
    untested: str | None


def transfer(source: Source) -> Drawing:
    """The matrix of all pairs that were trained. ConfigError where no pair was, or an arm is there twice."""
    cells = transfer_cells(source.arms, source.allowed)
    missing = [
        f"no run of {cell.target} with {cell.auxiliary}"
        + ("" if cell.alone is not None else f", nor of {cell.target} alone")
        for cell in cells
        if cell.difference is None
    ]
    missing += [f"no test: {reason}" for reason in dict.fromkeys(cell.untested for cell in cells) if reason]
    caption = (
        "Score of a target task (column) trained together with an auxiliary task (row), less its score trained alone, "
        "which stands on the diagonal; in points. Grey: not distinguishable from training alone after Holm's "
        "correction over the whole matrix; italics: not tested. The intervals in the CSV are 95%, uncorrected."
    )
    return Drawing(cells, caption, tuple(dict.fromkeys(missing)))


def transfer_cells(arms: Sequence[Arm], allowed: "Collection[Kind]" = ()) -> list[TransferCell]:
    """A cell for every ordered pair of the tasks that were trained in pairs, stage by stage."""
    pairs = _pairs(arms)
    tasks = [
        task
        for task in in_suite_order([run.result for arm in pairs.values() for run in arm.runs])
        if any(task in trained for _, trained in pairs)
    ]
    alone = {task: _alone(arms, task) for task in tasks}
    found = _compared(pairs, alone, allowed)
    return [
        _cell(stage, auxiliary, target, alone[target], found.get((stage, auxiliary, target)))
        for stage in dict.fromkeys(stage for stage, _ in pairs)
        for auxiliary, target in permutations(tasks, _PAIR)
    ]


def _pairs(arms: Sequence[Arm]) -> dict[tuple[StageName, frozenset[str]], Arm]:
    pairs: dict[tuple[StageName, frozenset[str]], Arm] = {}
    for arm in arms:
        trained = frozenset(task for task in arm.tasks if _is_trained(task))
        if arm.stage == "single" or len(trained) != _PAIR:
            continue
        if (arm.stage, trained) in pairs:
            raise ConfigError(
                f"{pairs[arm.stage, trained].name} and {arm.name} both train {' with '.join(sorted(trained))}, and the "
                "matrix has one place for them: name the runs of one"
            )
        pairs[arm.stage, trained] = arm
    if not pairs:
        raise ConfigError(
            "a transfer matrix needs arms that train two tasks jointly, as a study with pairwise: does; there are none"
        )
    return pairs


def _is_trained(task: str) -> bool:
    return task not in registry.names() or not registry.get(task).evaluate_only


def _alone(arms: Sequence[Arm], task: str) -> Arm | None:
    found = [arm for arm in arms if arm.stage == "single" and task in arm.tasks]
    if len(found) > 1:
        names = " and ".join(arm.name for arm in found)
        raise ConfigError(f"{names} all train {task} alone, and pairs are compared with one: name the runs of one")
    return found[0] if found else None


def _compared(
    pairs: dict[tuple[StageName, frozenset[str]], Arm], alone: dict[str, Arm | None], allowed: "Collection[Kind]"
) -> dict[tuple[str, str, str], Comparison]:
    keys, sides, draws = [], [], {}
    for target, single in alone.items():
        if single is None:
            continue
        with_target = {key: arm for key, arm in pairs.items() if target in key[1]}
        check_comparable([single, *with_target.values()], single, allowed)
        draws[target] = task_draw([single, *with_target.values()], target)
        for (stage, trained), arm in with_target.items():
            (auxiliary,) = trained - {target}
            keys.append((stage, auxiliary, target))
            sides.append((single, arm, Row(target, None)))
    return dict(zip(keys, compare_pairs(sides, draws), strict=True))


def _cell(stage: StageName, auxiliary: str, target: str, alone: Arm | None, found: Comparison | None) -> TransferCell:
    before = None if alone is None else _mean(alone, target)
    estimate = None if found is None else found.estimate
    return TransferCell(
        stage=stage,
        auxiliary=auxiliary,
        target=target,
        alone=before,
        together=None if found is None or before is None else before + found.difference,
        difference=None if found is None else found.difference,
        low=None if estimate is None else estimate.low,
        high=None if estimate is None else estimate.high,
        p_adjusted=None if found is None else found.p_adjusted,
        distinguishable=found is not None and found.distinguishable,
        detectable=None if found is None else found.detectable,
        untested=None if found is None else found.untested,
    )


def _mean(arm: Arm, task: str) -> float:
    scores = [arm.record(run).tasks[task].primary for run in arm.scoring(task)]
    return sum(scores) / len(scores)
