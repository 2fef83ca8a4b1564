"""What `mtl plan` says of cost: unknown before rows are tokenised, and then what a run really counts."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mtl
from mtl.config.load import load_config
from mtl.config.training import SelectionSettings
from mtl.costs.machine import machine_key
from mtl.stages.model_costs import evaluations, expected_sizes
from mtl.stages.plan import plan_run
from mtl.stages.prepare import prepare

TINY = [
    "encoder.layers=1", "encoder.width=16", "encoder.attention_heads=2", "encoder.feed_forward=32",
    "tasks=[mini/entail2,mini/similarity]", "training.threads=1", "training.precision=fp32", "training.epochs=3",
]  # fmt: skip
HEAVY = ("torch", "transformers", "datasets", "pandas", "scipy", "tokenizers")


def tiny(tmp_path: Path, *overrides: str):
    return load_config("quickstart", [*TINY, f"data.cache={tmp_path}", f"out={tmp_path / 'run'}", *overrides])


def test_lengths_are_unknown_until_prepared_and_exact_then(tmp_path: Path) -> None:
    config = tiny(tmp_path, "sampling=exact_epoch", "stages=[joint]", "training.epochs=1")
    before = plan_run(config).costs
    assert before.total.tokens is None
    assert before.flops_per_thousand_tokens == 3 * 1000 * 2 * (4 * 16 * 16 + 2 * 16 * 32)
    assert any("mtl prepare" in note for note in before.notes)
    prepared = prepare(config)
    plan = plan_run(config)
    tokens = sum(split.tokens for split in prepared.splits if split.split == "train")
    assert plan.costs.total.tokens == pytest.approx(tokens)
    assert plan.costs.total.training_seconds is None
    cost = mtl.run(config).stages["joint"].cost
    assert plan.costs.total.updates == cost.updates
    assert plan.costs.total.tokens == pytest.approx(cost.tokens)
    assert plan.costs.total.flops == pytest.approx(cost.flops)


def test_a_limit_is_known_from_the_store_alone(tmp_path: Path) -> None:
    settings = ("stages=[single]", "data.max_train_rows=50", "training.rows_per_update=10", "training.epochs=1")
    config = tiny(tmp_path, *settings, "single.training.updates=5")
    prepare(config)
    plan = plan_run(config)
    result = mtl.run(config)
    for model, task in zip(plan.costs.stages[0].models, plan.tasks, strict=True):
        spent = json.loads((tmp_path / "run" / "single" / task / "stage.json").read_text())["cost"]
        assert model.tokens == pytest.approx(spent["tokens"])
    assert result.stages["single"].cost.updates == plan.costs.stages[0].total.updates


def test_shares_and_scored_parts_count_as_much_as_they_are(tmp_path: Path) -> None:
    stage = ("stages=[joint]", "data.max_train_rows=null")
    prepare(tiny(tmp_path, *stage))
    whole, part = (
        plan_run(tiny(tmp_path, *stage, *more)).costs.total
        for more in ((), ("data.max_dev_rows={mini/entail2: 40}", "data.fraction=0.1"))
    )
    spent = mtl.run(tiny(tmp_path, *stage, "data.fraction=0.1", "sampling=exact_epoch", "training.epochs=1"))
    planned = plan_run(tiny(tmp_path, *stage, "data.fraction=0.1", "sampling=exact_epoch", "training.epochs=1"))
    assert planned.costs.total.tokens == pytest.approx(spent.stages["joint"].cost.tokens)
    assert (part.evaluation_flops or 0) < 0.9 * (whole.evaluation_flops or 0)


def test_updates_in_tokens_are_counted_once_lengths_are_known(tmp_path: Path) -> None:
    config = tiny(tmp_path, "stages=[joint]", "training.tokens_per_update=2000", "training.epochs=1")
    assert plan_run(config).costs.total.updates is None
    prepare(config)
    costs = plan_run(config).costs.total
    assert costs.updates == mtl.run(config).stages["joint"].cost.updates
    assert costs.tokens == pytest.approx(2000 * (costs.updates or 0))


def test_a_gpu_is_an_estimate_that_says_so(tmp_path: Path) -> None:
    config = tiny(tmp_path, "stages=[joint]")
    prepare(config)
    costs = plan_run(config, gpu="l4").costs
    assert costs.basis.startswith("an estimate for one L4: 35% of its 121 TFLOP/s")
    assert (costs.total.training_seconds or 0) > 0
    assert (costs.total.memory_bytes or 0) > 16 * (costs.parameters or 0)


def test_the_command_that_measures_this_machine_is_told(tmp_path: Path) -> None:
    costs = plan_run(tiny(tmp_path)).costs
    assert "`mtl bench machine training.threads=1 training.precision=fp32 data.cache=" in costs.basis


def test_checkpoints_on_disk(tmp_path: Path) -> None:
    overrides = ("stages=[joint,finetune]", "joint.training.updates=100", "checkpoint.every=40", "checkpoint.keep=2")
    joint, finetune = plan_run(tiny(tmp_path, *overrides)).costs.stages
    weights = joint.total.disk_bytes or 0
    assert joint.total.disk_bytes_most == pytest.approx(7 * weights)
    assert len(finetune.models) == 2
    best = plan_run(tiny(tmp_path, *overrides, "joint.selection.on=dev", "finetune_from=task_best")).costs.stages[0]
    assert best.total.disk_bytes == pytest.approx(4 * weights)


def test_evaluations_are_counted_as_the_loop_has_them() -> None:
    settings = mtl.config.run.StageSettings()
    assert evaluations(settings, 100) == 0
    every = settings.model_copy(update={"evaluation": settings.evaluation.model_copy(update={"every": 25})})
    assert evaluations(every, 100) == 3
    assert evaluations(every, 101) == 4
    selected = every.model_copy(update={"selection": SelectionSettings(on="dev")})
    assert evaluations(selected, 100) == 4
    assert evaluations(selected, 101) == 5


@pytest.mark.parametrize("gpu", [None, "h200"])
def test_a_plan_loads_nothing_heavy(tmp_path: Path, gpu: str | None, repository: Path) -> None:
    prepare(tiny(tmp_path, "stages=[joint]"))
    words = ["plan", "quickstart", *TINY, f"data.cache={tmp_path}", "data.max_train_rows=20"]
    code = (
        f"import sys\nfrom mtl.cli import main\nassert main({words + (['--gpu', gpu] if gpu else [])!r}) == 0\n"
        f"print('loaded', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded"


def test_another_precision_is_another_machine() -> None:
    training = mtl.config.run.StageSettings().training
    other = training.model_copy(update={"precision": "fp32"})
    assert machine_key(training) != machine_key(other)


def test_how_many_different_sizes_come_up() -> None:
    draws = np.random.default_rng(1).normal(0.0, 30.0, (200, 250)).round()
    assert expected_sizes(250, 30.0) == pytest.approx(np.mean([np.unique(row).size for row in draws]), rel=0.02)
    assert expected_sizes(250, 0.0) == 1.0
    assert expected_sizes(10, 1e5) == pytest.approx(10.0, rel=1e-3)
