"""Fine-tuning starts from what the joint stage saved, and leaves it alone."""

import hashlib
import shutil
from pathlib import Path

import pytest
from tiny_runs import ENTAIL, SIMILARITY, TASKS, run_tiny, weights

from mtl.errors import DataError
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_tensors, verify_checkpoint
from mtl.stages import pipeline, train_one
from mtl.stages.scoring import Snapshot

BARELY = ("stages=[joint,finetune]", "finetune.training.updates=1", "finetune.optimizer.learning_rate=1e-30")


def _hashes(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_joint_stage_is_untouched_by_all_fine_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, before = tmp_path / "run", {}
    original = pipeline.train_one

    def train_one(context: pipeline.RunContext, unit: pipeline.Unit) -> object:
        if unit.stage == "finetune" and not before:
            before.update(_hashes(out / "joint"))
        return original(context, unit)

    monkeypatch.setattr(pipeline, "train_one", train_one)
    run_tiny(out, "stages=[joint,finetune]")
    assert "checkpoints/last/model.safetensors" in before
    assert _hashes(out / "joint") == before


def test_every_task_has_weights_of_its_own(full_run: RunDirectory) -> None:
    joint = weights(full_run.stage("joint").checkpoints / "last")
    saved = [
        weights(full_run.stage(stage, task).checkpoints / "last") for stage in ("single", "finetune") for task in TASKS
    ]
    assert len({item["model"] for item in (joint, *saved)}) == 1 + 2 * len(TASKS)
    for task in TASKS:
        for stage in ("single", "finetune"):
            directory = full_run.stage(stage, task).checkpoints / "last"
            verify_checkpoint(directory)
            assert all(name.startswith(f"{task}/") for name in load_tensors(directory, "heads"))


def test_it_starts_from_the_joint_encoder_and_the_task_s_own_head(tmp_path: Path) -> None:
    """With a rate that moves no weight, what is saved after an update is what was started from."""
    run_tiny(tmp_path / "run", *BARELY, "finetune.optimizer.weight_decay=0")
    run = RunDirectory(tmp_path / "run")
    joint = run.stage("joint").checkpoints / "last"
    heads = load_tensors(joint, "heads")
    for task in (ENTAIL, SIMILARITY):
        tuned = run.stage("finetune", task).checkpoints / "last"
        assert weights(tuned)["model"] == weights(joint)["model"]
        for name, tensor in load_tensors(tuned, "heads").items():
            assert tensor.equal(heads[name])
    result = read_result(run.result)
    for task in (ENTAIL, SIMILARITY):
        assert result.stages["finetune"].tasks[task].splits == result.stages["joint"].tasks[task].splits


def test_it_starts_from_the_selected_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([1.0, 3.0, 2.0, 0.0])
    monkeypatch.setattr(train_one, "score_snapshot", lambda *_, **__: Snapshot({}, next(scores), {}))
    run_tiny(tmp_path / "run", *BARELY, "joint.selection.on=holdout", "joint.evaluation.every=2")
    run = RunDirectory(tmp_path / "run")
    joint = run.stage("joint").checkpoints
    tuned = weights(run.stage("finetune", ENTAIL).checkpoints / "last")
    assert tuned["model"] == weights(joint / "best")["model"] != weights(joint / "last")["model"]


def test_damaged_joint_weights_are_not_fine_tuned(full_run: RunDirectory, tmp_path: Path) -> None:
    out = shutil.copytree(full_run.path, tmp_path / "run")
    shutil.rmtree(out / "finetune")
    path = out / "joint/checkpoints/last/model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="SHA-256"):
        run_tiny(out, "seed=3", tasks=TASKS, resume=True)


def test_what_it_inherits_is_the_cost_of_the_joint_stage(full_run: RunDirectory) -> None:
    result = read_result(full_run.result)
    joint, finetune = result.stages["joint"].cost, result.stages["finetune"].cost
    assert finetune.inherited == {"joint": joint}
    assert joint.inherited == result.stages["single"].cost.inherited == {}
    assert (joint.updates, finetune.updates, result.stages["single"].cost.updates) == (8, 9, 24)
    assert (joint.examples, finetune.examples) == (64, 72)
    assert joint.tokens > joint.examples
    assert joint.flops > 0
