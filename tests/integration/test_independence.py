"""What a task gets does not depend on which other tasks a run has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import (
    ACCEPTABILITY,
    ENTAIL,
    SIMILARITY,
    TASKS,
    assert_same_training,
    run_tiny,
    tiny_config,
    without_seconds,
)

from mtl import tasks
from mtl.config.encoder import SequenceHeadSettings
from mtl.config.resolve import resolve_stage
from mtl.data.tokenizer import load_tokenizer
from mtl.models.load import load_encoder
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.stages.datasets import load_task_data
from mtl.stages.models import build_model, model_tensors
from mtl.training.update import Updater


def test_another_task_changes_no_single_task_training(tmp_path: Path) -> None:
    orders = {"two": TASKS[:2], "three": (ACCEPTABILITY, SIMILARITY, ENTAIL)}
    results = {name: run_tiny(tmp_path / name, "stages=[single]", tasks=order) for name, order in orders.items()}
    for task in orders["two"]:
        first, second = (RunDirectory(tmp_path / name).stage("single", task) for name in orders)
        assert_same_training(first, second)
        assert results["two"].stages["single"].tasks[task] == results["three"].stages["single"].tasks[task]


def test_single_task_training_is_the_same_beside_other_stages(full_run: RunDirectory, tmp_path: Path) -> None:
    run_tiny(tmp_path / "alone", "seed=3", "stages=[single]", tasks=(SIMILARITY,))
    assert_same_training(
        RunDirectory(tmp_path / "alone").stage("single", SIMILARITY), full_run.stage("single", SIMILARITY)
    )


def test_another_task_changes_no_order_in_joint_training(tmp_path: Path) -> None:
    def rows_by_task(out: Path, names: tuple[str, ...]) -> dict[str, list[int]]:
        seen: dict[str, list[int]] = {name: [] for name in names}
        original = Updater.run

        def run(self: Updater, update: Any) -> Any:
            for batch in update.batches:
                for task, chosen in batch.layout.slices.items():
                    seen[task] += batch.example_ids[chosen].tolist()
            return original(self, update)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Updater, "run", run)
            run_tiny(out, "stages=[joint]", "training.updates=20", tasks=names)
        return seen

    two = rows_by_task(tmp_path / "two", TASKS[:2])
    three = rows_by_task(tmp_path / "three", (ACCEPTABILITY, *TASKS[:2]))
    for task in TASKS[:2]:
        common = min(len(two[task]), len(three[task]))
        assert common > 40
        assert two[task][:common] == three[task][:common]
    assert two[ENTAIL][:40] != two[SIMILARITY][:40]


def test_another_task_changes_no_head_at_its_start(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "run", tasks=TASKS)
    loaded = load_encoder(config.encoder, config.seed, load_tokenizer(config.encoder).vocabulary_size)
    groups = []
    for names in (TASKS[:2], TASKS[::-1]):
        specs = [tasks.get(name) for name in names]
        model = build_model(loaded, specs, dict.fromkeys(names, SequenceHeadSettings()), 1)
        groups.append(model_tensors(model)["heads"])
    assert groups[0].keys() < groups[1].keys()
    for name, tensor in groups[0].items():
        assert np.array_equal(tensor.numpy(), groups[1][name].numpy())
    assert not np.array_equal(groups[0][f"{ENTAIL}/dense.weight"], groups[0][f"{SIMILARITY}/dense.weight"])


def test_another_task_changes_no_rows_chosen_for_training(tmp_path: Path) -> None:
    chosen = []
    for names in (TASKS[:2], TASKS[::-1]):
        config = tiny_config(tmp_path / "run", "selection.on=holdout", tasks=names)
        data = load_task_data(config, [tasks.get(name) for name in names], load_tokenizer(config.encoder), lambda: None)
        settings = resolve_stage(config, "joint", None)
        chosen.append({name: data[name].stream(1, settings).rows.tolist() for name in names})
    assert all(chosen[0][name] == chosen[1][name] for name in TASKS[:2])


def test_the_same_run_twice_is_bit_equal(full_run: RunDirectory, tmp_path: Path) -> None:
    result = run_tiny(tmp_path / "again", "seed=3", tasks=TASKS)
    again = RunDirectory(tmp_path / "again")
    assert_same_training(again.stage("joint"), full_run.stage("joint"))
    for stage in ("single", "finetune"):
        for task in TASKS:
            assert_same_training(again.stage(stage, task), full_run.stage(stage, task))
    assert without_seconds(result.model_dump()) == without_seconds(read_result(full_run.result).model_dump())


def test_another_seed_is_another_run(full_run: RunDirectory, tmp_path: Path) -> None:
    result = run_tiny(tmp_path / "other", "seed=4", tasks=TASKS)
    first = read_result(full_run.result)
    assert (result.arm_hash == first.arm_hash, result.run_hash == first.run_hash) == (True, False)
    other, same = RunDirectory(tmp_path / "other").stage("joint"), full_run.stage("joint")
    assert (other.checkpoints / "last/heads.safetensors").read_bytes() != (
        same.checkpoints / "last/heads.safetensors"
    ).read_bytes()
