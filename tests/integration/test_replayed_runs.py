"""Runs that draw, update by update, what another run drew."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_studies import OVERRIDES
from tiny_runs import JOINT, TASKS, assert_same_training, run_tiny

from mtl import api
from mtl.data.task_sequence import TaskSequence, read_sequence
from mtl.errors import ConfigError, DataError
from mtl.rundir import RunDirectory
from mtl.studies.find import find_runs
from mtl.studies.pairing import pairing_of
from mtl.studies.scored_arms import find_arm, scored_arms
from mtl.studies.spec import read_study

STARTS = {
    "drawn": (),
    "exact_epoch": ("sampling=exact_epoch", "data.max_train_rows={mini/entail2: 30, mini/similarity: 47}"),
    "one_task_an_update": ("training.tasks_per_update=1",),
    "in_tokens": ("training.tokens_per_update=150",),
}


def sequence(run: Path) -> TaskSequence:
    return read_sequence(RunDirectory(run).stage("joint").sequence)


def replay(source: Path, *overrides: str) -> tuple[str, ...]:
    """The overrides of a run like ``joint_run`` that replays ``source``."""
    return (*JOINT, *overrides, "sampling=replay", f"sampling.from={source}")


@pytest.mark.parametrize("start", STARTS)
def test_a_replayed_run_draws_the_same_in_each_update(start: str, tmp_path: Path) -> None:
    source, replayed = tmp_path / "source", tmp_path / "replayed"
    run_tiny(source, *JOINT, *STARTS[start])
    kept = [override for override in STARTS[start] if not override.startswith("sampling")]
    run_tiny(replayed, *replay(source, *kept))
    assert np.array_equal(sequence(source).counts, sequence(replayed).counts)
    assert len(np.unique(sequence(source).counts, axis=0)) > 1, "the updates differ, or nothing would be tested"
    if start != "exact_epoch":
        logged = "train/mini/entail2/probability"
        drop_probabilities(source, replayed, logged)
        # Nothing else changed, so that all is the same, bit for bit. (Exact epochs order the slots otherwise.)
        assert_same_training(RunDirectory(source).stage("joint"), RunDirectory(replayed).stage("joint"))


def drop_probabilities(*runs_and_name: Path | str) -> None:
    """A replay's expected shares are what was drawn; those of its source are what was to be drawn on average."""
    *runs, name = runs_and_name
    found = []
    for run in runs:
        log = RunDirectory(Path(run)).stage("joint").metrics
        records = [json.loads(line) for line in log.read_text().splitlines()]
        found.append([record[name] for record in records if name in record])
        kept = [{key: value for key, value in record.items() if "/probability" not in key} for record in records]
        log.write_text("".join(json.dumps(record) + "\n" for record in kept))
    assert found[0] != found[1]


def test_a_run_of_another_order_or_seed_replays_the_counts(joint_run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "other"
    run_tiny(out, *replay(joint_run.path, "seed=9", "training.updates=5"), tasks=TASKS[1::-1])
    assert sequence(out).tasks == TASKS[1::-1]
    assert np.array_equal(sequence(out).counts[:, ::-1], sequence(joint_run.path).counts[:5])


def test_the_content_of_a_sequence_is_identity_and_its_place_is_not(joint_run: RunDirectory, tmp_path: Path) -> None:
    moved, changed = tmp_path / "moved", tmp_path / "changed"
    for copy in (moved, changed):
        shutil.copytree(joint_run.path, copy)
    path = RunDirectory(changed).stage("joint").sequence
    with np.load(path) as arrays:
        content = dict(arrays)
    content["counts"] = content["counts"][::-1]
    np.savez(path, **content)
    first, same, other = (
        run_tiny(tmp_path / f"of_{source.name}", *replay(source)) for source in (joint_run.path, moved, changed)
    )
    assert first.arm_hash == same.arm_hash
    assert first.arm_hash != other.arm_hash
    assert first.arm_hash != api.run(api.load_config(joint_run.config), resume=True).arm_hash
    np.savez(RunDirectory(moved).stage("joint").sequence, **content)
    (tmp_path / "of_moved" / "result.json").unlink()
    with pytest.raises(ConfigError, match=r"the task sequence that sampling\.from names changed since"):
        run_tiny(tmp_path / "of_moved", *replay(moved), resume=True)


def test_only_a_joint_stage_replays(joint_run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run_tiny(out, *replay(joint_run.path, "stages=[single,joint,finetune]"))
    assert set(result.stages) == {"single", "joint", "finetune"}
    assert np.array_equal(sequence(out).counts, sequence(joint_run.path).counts)


@pytest.mark.parametrize(
    ("overrides", "error", "match"),
    [
        (lambda run: ("sampling=replay",), ConfigError, r"set sampling\.from"),
        (lambda run: replay(run, "training.updates=9"), ConfigError, "has recorded 8 updates"),
        (lambda run: replay(run, "training.rows_per_update=4"), ConfigError, r"training\.rows_per_update 8"),
        (lambda run: replay(run, f"tasks=[{','.join(TASKS)}]"), ConfigError, f"never from {TASKS[2]}"),
        (lambda run: replay(run.parent), DataError, "is no run directory"),
    ],
)
def test_a_replay_that_cannot_be_leaves_nothing_behind(
    overrides: Callable[[Path], tuple[str, ...]],
    error: type[Exception],
    match: str,
    joint_run: RunDirectory,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=match):
        run_tiny(tmp_path / "run", *JOINT, *overrides(joint_run.path))
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_arms_of_a_study_that_replay_another_are_paired_with_it(tmp_path: Path) -> None:
    document = {
        "name": "paired",
        "question": "Does a rate change anything on the same draws?",
        "base": ["empty.yaml"],
        "overrides": [*OVERRIDES, "training.updates=3"],
        "arms": {
            "slow": ["sampling=replay", "sampling.from=arm:fast", "optimizer.learning_rate=1e-4"],
            "fast": ["sampling.temperature=2"],
        },
        "seeds": 5,
        "equal": "updates",
    }
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "study.yaml").write_text(json.dumps(document))
    outcome = api.study(read_study(tmp_path / "study.yaml"), tmp_path / "out")
    assert len(outcome.complete) == 10
    arms = scored_arms(find_runs([tmp_path / "out"]))
    slow, fast = (find_arm(arms, name) for name in ("slow", "fast"))
    assert len(arms) == 2, "the runs of an arm replay others, but it is one arm"
    for one, other in zip(slow.runs, fast.runs, strict=True):
        assert one.result.seed == other.result.seed
        assert sequence(one.directory.path).equals(sequence(other.directory.path))
    assert pairing_of(slow, fast, TASKS[:2]) == "paired"
    first, second = (run.directory.stage("joint").sequence for run in slow.runs[:2])
    shutil.copyfile(second, first)
    assert pairing_of(slow, fast, TASKS[:2]) == "Welch"
