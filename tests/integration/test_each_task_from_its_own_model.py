"""Runs whose tasks each start from another run's model of the same task: the control of more training alone."""

import json
from pathlib import Path

import pytest
import torch
from tiny_runs import ACCEPTABILITY, ENTAIL, SIMILARITY, TINY, result_of, run_tiny

from mtl import api
from mtl.cli import main
from mtl.errors import ConfigError, DataError
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_tensors

BOTH = (ENTAIL, SIMILARITY)
# So small a rate moves no weight of single precision, so what a training ends with is what it began with.
STILL = ("finetune.training.updates=1", "optimizer.learning_rate=1e-30", "optimizer.weight_decay=0")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = RunDirectory(tmp_path_factory.mktemp("source") / "run")
    run_tiny(run.path, "stages=[single]", f"task_overrides.{SIMILARITY}.training.updates=5", tasks=BOTH)
    return run


def _last(run: RunDirectory, stage: str, task: str, part: str) -> dict[str, torch.Tensor]:
    return dict(load_tensors(run.stage(stage, task).checkpoints / "last", part))


def _same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def _asked(source: Path, *more: str) -> tuple[str, ...]:
    return ("stages=[finetune]", f"init.from={source}", "init.stage=single", *more)


def test_each_task_starts_from_its_own_encoder_and_head(source: RunDirectory, tmp_path: Path) -> None:
    kept, new = RunDirectory(tmp_path / "kept"), RunDirectory(tmp_path / "new")
    run_tiny(kept.path, *_asked(source.path, *STILL), tasks=BOTH)
    run_tiny(new.path, *_asked(source.path, *STILL, "init.heads=new"), tasks=BOTH)
    assert not _same(_last(source, "single", ENTAIL, "model"), _last(source, "single", SIMILARITY, "model"))
    for task in BOTH:
        for part in ("model", "heads"):
            assert _same(_last(kept, "finetune", task, part), _last(source, "single", task, part))
        assert _same(_last(new, "finetune", task, "model"), _last(source, "single", task, "model"))
        assert not _same(_last(new, "finetune", task, "heads"), _last(source, "single", task, "heads"))


def test_its_cost_is_that_of_the_models_started_from(source: RunDirectory, tmp_path: Path) -> None:
    both = run_tiny(tmp_path / "both", *_asked(source.path), tasks=BOTH).stages["finetune"].cost
    one = run_tiny(tmp_path / "one", *_asked(source.path), tasks=(SIMILARITY,)).stages["finetune"].cost
    assert (both.updates, both.inherited["init"].updates) == (6, 13)
    assert (one.updates, one.inherited["init"].updates) == (3, 5)


def test_every_model_that_is_read_is_part_of_the_identity(tmp_path: Path) -> None:
    results = []
    for name, task in (("plain", None), ("first", ENTAIL), ("second", SIMILARITY)):
        changed = () if task is None else (f"task_overrides.{task}.optimizer.learning_rate=2e-3",)
        run_tiny(tmp_path / f"{name}-source", "stages=[single]", *changed, tasks=BOTH)
        results.append(run_tiny(tmp_path / name, *_asked(tmp_path / f"{name}-source"), tasks=BOTH))
    assert len({result.arm_hash for result in results}) == 3
    assert len({result.run_hash for result in results}) == 3
    # A model that is not read plays no part.
    alone = [
        run_tiny(tmp_path / f"{name}-alone", *_asked(tmp_path / f"{name}-source"), tasks=(ENTAIL,))
        for name in ("plain", "second")
    ]
    assert alone[0].arm_hash == alone[1].arm_hash


def test_weights_that_changed_meanwhile_are_not_gone_on_from(source: RunDirectory, tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.symlink_to(source.path)
    run_tiny(tmp_path / "run", *_asked(path), tasks=BOTH)
    path.unlink()
    run_tiny(path, "stages=[single]", "training.updates=2", tasks=BOTH)
    with pytest.raises(ConfigError, match=f"the weights that {ENTAIL}, {SIMILARITY} started from changed"):
        run_tiny(tmp_path / "run", *_asked(path), tasks=BOTH, resume=True)


@pytest.mark.parametrize(
    ("overrides", "tasks", "kind", "message"),
    [
        (("stages=[joint,finetune]",), BOTH, ConfigError, "take joint out of stages"),
        (("stages=[single]",), (ENTAIL, ACCEPTABILITY), ConfigError, f"was not trained on {ACCEPTABILITY}"),
        (("init.stage=finetune",), BOTH, ConfigError, r"only the stages \('single',\)"),
        (("init.snapshot=best",), BOTH, DataError, f"no weights at single/{ENTAIL}/checkpoints/best"),
    ],
)
def test_what_cannot_be_started_from_is_refused(
    overrides: tuple[str, ...],
    tasks: tuple[str, ...],
    kind: type[Exception],
    message: str,
    source: RunDirectory,
    tmp_path: Path,
) -> None:
    with pytest.raises(kind, match=message):
        run_tiny(tmp_path / "run", *_asked(source.path, *overrides), tasks=tasks)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_study_compares_it_with_single_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = {
        "single": ["stages=[single]"],
        "single_continue": ["init.from=arm:single", "init.stage=single", "stages=[finetune]"],
        "longer": ["stages=[single]", "training.updates=11"],
    }
    study = tmp_path / "study.yaml"
    base = tmp_path / "empty.yaml"
    base.write_text("")
    document = {"name": "s", "question": "q", "base": str(base), "seeds": 2, "equal": "updates", "arms": arms}
    overrides = [*TINY, f"tasks=[{','.join(BOTH)}]", "training.device=cpu"]
    study.write_text(json.dumps({**document, "overrides": overrides, "baseline": "single"}))
    assert main(["study", str(study), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "every arm takes 22 updates in all" in said
    results = [result_of(path) for path in sorted(tmp_path.glob("out/runs/single_continue/seed-*"))]
    assert len({result["arm_hash"] for result in results}) == 2
    assert len({result["chain_hash"] for result in results}) == 1
    table = api.table(tmp_path / "out" / "runs", baseline="single")
    (line,) = [line for line in table.splitlines() if line.lstrip("> ").startswith(f"{ENTAIL}*")]
    assert line.count("±") == 3, "each seed would be an arm of its own"
    assert "single_continue (" not in table
    assert "n = 2" in table
