"""What an arm asks of the arms that it starts from or replays is known before any run."""

import pytest
from test_expand import refused, runs_of


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["tasks=[mini/entail2,mini/entail3]"], "only one of them trains mini/acceptability"),
        (["training.rows_per_update=7"], "joint training.rows_per_update is"),
        (["joint.training.tokens_per_update=500"], "where its own is not set"),
        (["joint.training.updates=9"], "set joint.training.updates to that or less"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_any_run(changes: list[str], told: str) -> None:
    replaying = ["sampling=replay", "sampling.from=arm:first"]
    assert told in refused(arms={"later": [*replaying, *changes], "first": ["joint.training.updates=8"]})


@pytest.mark.parametrize(
    ("source", "init", "told"),
    [
        ([], [], "the arm first selects nothing in its stage joint; set"),
        (["stages=[single]"], ["init.stage=single"], "nothing in its stage single of mini/entail2"),
        (["joint.selection.on=holdout"], ["init.task=mini/entail2"], "set finetune_from=task_best there"),
    ],
)
def test_a_best_snapshot_that_no_run_will_keep_is_refused(source: list[str], init: list[str], told: str) -> None:
    later = ["stages=[single]", "init.from=arm:first", "init.snapshot=best", *init]
    assert told in refused(arms={"later": later, "first": source})
    kept = [*source, "selection.on=holdout", "evaluation.every=1", "finetune_from=task_best"]
    if "stages=[single]" in source:
        kept.pop()
    assert runs_of(arms={"later": later, "first": kept})


def test_a_shorter_replay_is_none_to_refuse() -> None:
    replaying = ["sampling=replay", "sampling.from=arm:first", "joint.training.updates=8"]
    assert len(runs_of(arms={"later": replaying, "first": ["joint.training.updates=8"]})) >= 2
