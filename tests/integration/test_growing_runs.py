"""Runs that start from another's weights, runs that get more stages or tasks, and tasks that are only evaluated."""

import csv
import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from tiny_runs import ACCEPTABILITY, ENTAIL, SIMILARITY, run_tiny, tiny_config

from mtl.data.tokenizer import load_tokenizer
from mtl.errors import ConfigError, DataError
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_tensors
from mtl.stages.initial import load_initial_weights
from mtl.stages.models import build_model, keep_heads
from mtl.tasks import get, mini, registry

THREE = "mini/entail3"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = RunDirectory(tmp_path_factory.mktemp("source") / "run")
    run_tiny(run.path, "stages=[joint]", tasks=(ENTAIL, SIMILARITY))
    return run


def sha256_below(path: Path) -> dict[str, str]:
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_run_starts_from_the_encoder_and_heads_of_another(source: RunDirectory, tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "run", f"init.from={source.path}", tasks=(ENTAIL, ACCEPTABILITY))
    initial = load_initial_weights(config, load_tokenizer(config.encoder))
    last = source.stage("joint").checkpoints / "last"
    for name, tensor in initial.loaded.encoder.model.state_dict().items():
        assert torch.equal(tensor, load_tensors(last, "model")[name])
    assert initial.heads == last
    assert initial.inherited["init"].updates == 8
    specs = [get(ENTAIL), get(ACCEPTABILITY)]
    model = build_model(initial.loaded, specs, {spec.name: config.head for spec in specs}, seed=1)
    new = model.head_module(ACCEPTABILITY).state_dict()["output.weight"].clone()
    keep_heads(model, specs, last)
    kept = model.head_module(ENTAIL).state_dict()["output.weight"]
    assert torch.equal(kept, load_tensors(last, "heads")[f"{ENTAIL}/output.weight"])
    assert torch.equal(model.head_module(ACCEPTABILITY).state_dict()["output.weight"], new)


def test_the_weights_started_from_set_arms_apart_and_their_place_does_not(source: RunDirectory, tmp_path: Path) -> None:
    overrides = ("stages=[single]", "training.updates=1")
    plain = run_tiny(tmp_path / "plain", *overrides)
    started = run_tiny(tmp_path / "started", *overrides, f"init.from={source.path}")
    moved = tmp_path / "moved"
    moved.symlink_to(source.path)
    again = run_tiny(tmp_path / "again", *overrides, f"init.from={moved}")
    other_heads = run_tiny(tmp_path / "heads", *overrides, f"init.from={source.path}", "init.heads=new")
    assert started.arm_hash == again.arm_hash
    assert len({plain.arm_hash, started.arm_hash, other_heads.arm_hash}) == 3
    assert started.stages["single"].cost.inherited["init"].updates == 8


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["init.from=nowhere"], "no run directory"),
        (["init.stage=single", "init.task=mini/entail2"], "no weights at single/mini/entail2"),
        (["init.snapshot=best"], "no weights at joint/checkpoints/best"),
        (["init.snapshot=best", "init.task=mini/entail2"], "best_for/mini/entail2; .*finetune_from=task_best"),
        (["encoder.width=32"], "do not fit"),
    ],
)
def test_weights_that_are_not_there_or_do_not_fit(
    overrides: list[str], message: str, source: RunDirectory, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        run_tiny(tmp_path / "run", "stages=[single]", f"init.from={source.path}", *overrides)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_fine_tuning_from_another_runs_joint_weights(source: RunDirectory, tmp_path: Path) -> None:
    result = run_tiny(tmp_path / "run", "stages=[finetune]", f"init.from={source.path}", tasks=(ENTAIL,))
    assert result.stages["finetune"].cost.inherited["init"].updates == 8
    with pytest.raises(ConfigError, match=r"init\.from"):
        run_tiny(tmp_path / "other", "stages=[finetune]", tasks=(ENTAIL,))


def test_a_finished_run_gets_a_stage_and_a_task_and_what_was_done_stays(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    first = run_tiny(run.path, "stages=[joint]", tasks=(ENTAIL, SIMILARITY))
    before = sha256_below(run.stage("joint").path)
    second = run_tiny(run.path, "stages=[joint,finetune]", tasks=(ENTAIL, SIMILARITY), resume=True)
    third = run_tiny(run.path, "stages=[joint,finetune]", tasks=(ENTAIL, SIMILARITY, ACCEPTABILITY), resume=True)
    assert sha256_below(run.stage("joint").path) == before
    assert first.stages["joint"] == second.stages["joint"] == third.stages["joint"]
    assert len({first.arm_hash, second.arm_hash, third.arm_hash}) == 3
    assert list(third.stages["finetune"].tasks) == [ENTAIL, SIMILARITY, ACCEPTABILITY]
    assert third.stages["finetune"].tasks[ENTAIL] == second.stages["finetune"].tasks[ENTAIL]
    whole = run_tiny(tmp_path / "whole", "stages=[joint,finetune]", tasks=(ENTAIL, SIMILARITY))
    assert whole.arm_hash == second.arm_hash
    assert whole.stages["finetune"].tasks == second.stages["finetune"].tasks


def test_other_changes_are_still_refused_and_so_is_taking_away(tmp_path: Path) -> None:
    run_tiny(tmp_path / "run", "stages=[joint]", tasks=(ENTAIL, SIMILARITY))
    for overrides, tasks in (
        (("stages=[joint,finetune]", "optimizer.beta1=0.5"), (ENTAIL, SIMILARITY)),
        (("stages=[finetune]",), (ENTAIL, SIMILARITY)),
        (("stages=[joint]",), (ENTAIL,)),
    ):
        with pytest.raises(ConfigError):
            run_tiny(tmp_path / "run", *overrides, tasks=tasks, resume=True)


def test_a_task_that_is_only_evaluated_is_read_by_another_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    rows = mini.generate(ENTAIL, "dev")
    with (tmp_path / "two_way.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    (tmp_path / "two_way.yaml").write_text(
        "name: mine/two_way\nfiles: {dev: two_way.csv}\ntexts: [premise, hypothesis]\nlabel: label\n"
        "labels: [entailment, not_entailment]\nscored_by: mini/entail3\n"
        "label_map: {neutral: not_entailment, contradiction: not_entailment}\n"
    )
    task_file = tmp_path / "two_way.yaml"
    result = run_tiny(tmp_path / "run", "stages=[single,joint]", tasks=(THREE, SIMILARITY, str(task_file)))
    for stage in ("single", "joint"):
        record = result.stages[stage].tasks["mine/two_way"]  # type: ignore[index]
        assert record.splits["dev"].rows == 400
        assert record.train_rows is None
        assert set(result.stages[stage].suites) == {"mini"}  # type: ignore[index]
    run = RunDirectory(tmp_path / "run")
    table = pq.read_table(run.stage("joint").predictions("mine/two_way", "dev"))
    said = table["prediction"].to_pylist()
    assert set(said) <= {"entailment", "not_entailment"}
    right = sum(one == other for one, other in zip(said, rows["label"], strict=True))
    assert result.stages["joint"].tasks["mine/two_way"].primary == pytest.approx(100 * right / 400)
    assert len(table["logits"][0].as_py()) == 3, "the logits are the head's own"
    control = ("stages=[joint]", "training.updates=1", f"data.shuffled_labels=[{THREE}]")
    shuffled = run_tiny(tmp_path / "shuffled", *control, tasks=(THREE, str(task_file)))
    assert shuffled.stages["joint"].tasks["mine/two_way"].labels_shuffled, "its head learned from such labels"
    with pytest.raises(ConfigError, match="does not train"):
        run_tiny(tmp_path / "headless", "stages=[joint]", tasks=(SIMILARITY, str(task_file)))
