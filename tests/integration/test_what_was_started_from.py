"""A run that starts from another's weights is not scored on, and does not select on, what these have seen unmarked."""

from pathlib import Path

import pytest
from tiny_runs import ACCEPTABILITY, ENTAIL, SIMILARITY, run_tiny

from mtl import api
from mtl.errors import ConfigError

BOTH = (ENTAIL, SIMILARITY)
ONE_UPDATE = ("training.updates=1", "finetune.training.updates=1")


@pytest.mark.parametrize(
    ("stage", "snapshot", "expected"),
    [("joint", "best", "dev"), ("joint", "last", "last"), ("single", "best", "dev"), ("single", "last", "last")],
)
def test_weights_chosen_on_dev_mark_what_goes_on_from_them(
    tmp_path: Path, stage: str, snapshot: str, expected: str
) -> None:
    chosen = (f"stages=[{stage}]", "selection.on=dev", "evaluation.every=1", "training.updates=2")
    before = run_tiny(tmp_path / "before", *chosen, tasks=BOTH).stages[stage].tasks[ENTAIL]  # type: ignore[index]
    start = (f"init.from={tmp_path / 'before'}", f"init.stage={stage}", f"init.snapshot={snapshot}")
    tasks = BOTH if stage == "single" else (ENTAIL, ACCEPTABILITY)
    after = run_tiny(tmp_path / "after", "stages=[finetune]", *start, *ONE_UPDATE, tasks=tasks).stages["finetune"].tasks
    assert after[ENTAIL].selected_on == expected
    assert after[ENTAIL].looks == 1 + (before.looks if expected == "dev" else 0)
    if ACCEPTABILITY in after:
        assert after[ACCEPTABILITY].selected_on == "last", "its dev split had no part in the choice"


def test_a_choice_on_dev_is_not_forgotten_over_two_runs(tmp_path: Path) -> None:
    chosen = ("selection.on=dev", "evaluation.every=1", "training.updates=2")
    run_tiny(tmp_path / "a", "stages=[joint]", *chosen, tasks=BOTH)
    start = (f"init.from={tmp_path / 'a'}", "init.snapshot=best", *ONE_UPDATE)
    both = run_tiny(tmp_path / "b", "stages=[joint,finetune]", "finetune_from=last", *start, tasks=BOTH)
    assert {both.stages[stage].tasks[ENTAIL].selected_on for stage in both.stages} == {"dev"}
    last = run_tiny(tmp_path / "c", "stages=[finetune]", f"init.from={tmp_path / 'b'}", *ONE_UPDATE, tasks=BOTH)
    assert last.stages["finetune"].tasks[ENTAIL].selected_on == "dev"


def test_a_holdout_that_was_trained_on_selects_nothing(tmp_path: Path) -> None:
    run_tiny(tmp_path / "all", "stages=[single]", *ONE_UPDATE, tasks=BOTH)
    run_tiny(tmp_path / "part", "stages=[single]", "selection.on=holdout", *ONE_UPDATE, tasks=BOTH)
    asked = ("stages=[finetune]", "init.stage=single", "selection.on=holdout", *ONE_UPDATE)
    with pytest.raises(ConfigError, match=f"selects {ENTAIL}, {SIMILARITY} on a holdout that"):
        run_tiny(tmp_path / "run", *asked, f"init.from={tmp_path / 'all'}", tasks=BOTH)
    assert not (tmp_path / "run" / "config.yaml").exists()
    run_tiny(tmp_path / "run", *asked, f"init.from={tmp_path / 'part'}", tasks=BOTH)
    # The model of one task has seen that task's rows alone.
    one = ("stages=[single]", "init.stage=single", f"init.task={SIMILARITY}", "selection.on=holdout", *ONE_UPDATE)
    run_tiny(tmp_path / "other", *one, f"init.from={tmp_path / 'all'}", tasks=(ENTAIL,))


def test_what_is_scored_was_in_no_training_before(tmp_path: Path) -> None:
    def run(name: str, *overrides: str, task: str = ENTAIL) -> None:
        run_tiny(tmp_path / name, "stages=[joint]", *ONE_UPDATE, *overrides, tasks=(task,))

    folds = ("splits.kfold=2", "splits.fold=1")
    run("whole")
    run("other", f"init.from={tmp_path / 'whole'}", task=SIMILARITY)
    run("fold", *folds)
    for source in ("whole", "other"):
        with pytest.raises(ConfigError, match=rf"whole has divided .*no folds; this run fold 1 of 2.*{ENTAIL}"):
            run("refused", f"init.from={tmp_path / source}", *folds)
    for wrong in (("splits.kfold=2", "splits.fold=0"), ("splits.kfold=3", "splits.fold=1"), ()):
        with pytest.raises(ConfigError, match=r"fold has divided its tasks otherwise \(fold 1 of 2 held out"):
            run("refused", f"init.from={tmp_path / 'fold'}", *wrong)
    assert not (tmp_path / "refused" / "config.yaml").exists()
    run("same", f"init.from={tmp_path / 'fold'}", *folds)
    run("elsewhere", f"init.from={tmp_path / 'whole'}", *folds, task=SIMILARITY)


@pytest.mark.parametrize("stage", ["joint", "single"])
def test_what_the_encoder_was_trained_on_stays_known_in_runs_that_go_on(tmp_path: Path, stage: str) -> None:
    known = "encoder.known_training_data=[Flickr30k,SNLI]"
    run_tiny(tmp_path / "before", f"stages=[{stage}]", known, *ONE_UPDATE, tasks=BOTH)
    start = (f"init.from={tmp_path / 'before'}", f"init.stage={stage}", "encoder.known_training_data=[SNLI]")
    after = run_tiny(tmp_path / "after", "stages=[finetune]", *start, *ONE_UPDATE, tasks=BOTH)
    assert after.encoder.known_training_data == ["SNLI", "Flickr30k"]


def test_runs_of_all_seeds_that_start_from_one_run_are_one_arm(tmp_path: Path) -> None:
    run_tiny(tmp_path / "before", "stages=[joint]", *ONE_UPDATE, tasks=(SIMILARITY,))
    asked = ("stages=[joint]", f"init.from={tmp_path / 'before'}", *ONE_UPDATE)
    results = [run_tiny(tmp_path / "arm" / f"seed-{seed}", *asked, f"seed={seed}", tasks=(ENTAIL,)) for seed in (1, 2)]
    assert results[0].arm_hash == results[1].arm_hash
    assert [result.chain_hash is None for result in results] == [False, True], "one of them has its source's seed"
    assert "seed 1, 2 (n = 2)" in api.table(tmp_path / "arm")
