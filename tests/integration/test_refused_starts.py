"""A start that is refused leaves what was there, and nothing in the way of the next one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import ENTAIL, JOINT, result_of, run_tiny, settings

from mtl.cli import main
from mtl.errors import ConfigError, DataError, NonFiniteError
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.stages import datasets
from mtl.training.update import Updater

MISSING = {
    "data": ("tasks=[glue/rte]", "data.root=nowhere"),
    "tokenizer": ("encoder.tokenizer=nowhere",),
    "encoder": ("encoder={kind: pretrained, path: nowhere}",),
}


@pytest.mark.parametrize("missing", MISSING)
def test_a_missing_part_leaves_no_directory(missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *settings(tmp_path / "run", *MISSING[missing])]) == 3
    assert "nowhere" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def _content(out: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_a_missing_part_costs_no_earlier_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_tiny(out, "stages=[joint]", "training.updates=1")
    before = _content(out)
    for flags in ({"overwrite": True}, {"resume": True}, {}):
        with pytest.raises((DataError, ConfigError)):
            run_tiny(out, *MISSING["data"], **flags)
        assert _content(out) == before


def test_an_earlier_run_is_only_replaced_when_told_to(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_tiny(out, "stages=[single]", "training.updates=1")
    before = _content(out)
    with pytest.raises(ConfigError, match="not empty"):
        run_tiny(out, "stages=[joint]", "training.updates=1")
    assert _content(out) == before
    run_tiny(out, "stages=[joint]", "training.updates=1", "training.precision=bf16", overwrite=True)
    assert not (out / "single").exists()
    # What the earlier run resolved is not kept either.
    assert '"precision": "bf16"' in (out / "environment.json").read_text()


def test_other_people_s_files_are_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    for flags in ({"overwrite": True}, {"resume": True}, {}):
        with pytest.raises(ConfigError):
            run_tiny(tmp_path, "stages=[joint]", **flags)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ConfigError, match="is a file"):
        run_tiny(tmp_path / "thesis.tex", "stages=[joint]")
    with pytest.raises(ConfigError, match="one of them"):
        run_tiny(tmp_path / "run", resume=True, overwrite=True)
    with pytest.raises(ConfigError, match="nothing to resume"):
        run_tiny(tmp_path / "run", resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_lock_of_a_dead_process_is_taken_over(
    joint_run: RunDirectory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock = tmp_path / "run/run.lock"
    code = "import os, signal, sys; from pathlib import Path; from mtl.runtime.lock import RunLock\n"
    code += "with RunLock(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    dead = subprocess.run([sys.executable, "-c", code, str(lock)], check=False, env=dict(os.environ))
    assert dead.returncode == -signal.SIGKILL
    assert lock.is_file()
    run_tiny(tmp_path / "run", *JOINT)
    assert "taking over" in caplog.text
    assert result_of(tmp_path / "run") == result_of(joint_run.path)


def test_a_loss_that_is_not_finite_ends_a_run_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, original = tmp_path / "run", Updater.run

    def run(self: Updater, update: object) -> object:
        if getattr(update, "step", None) == 5:
            for parameter in self.model.head_module(ENTAIL).parameters():
                parameter.data.fill_(float("inf"))
        return original(self, update)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Updater, "run", run)
        with pytest.raises(NonFiniteError, match="at update 5"):
            run_tiny(out, *JOINT)
    assert read_result(out / "result.json").status == "failed"
    # The trouble was not in what was saved, so the run can go on.
    assert run_tiny(out, *JOINT, resume=True).status == "complete"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("joint.training.tasks_per_update=9", "tasks_per_update"),
        ("joint.sampling={kind: fixed, shares: {mini/entail3: 2}}", "mini/entail3"),
        ("joint.weighting={kind: constant, weights: {mini/entail3: 2}}", "mini/entail3"),
        ("finetune.sampling={kind: exact_epoch}", "rows_per_update"),
    ],
)
def test_faults_of_a_later_stage_are_found_before_the_first(override: str, message: str, tmp_path: Path) -> None:
    tokens = ["finetune.training.tokens_per_update=99"] if "finetune" in override else []
    with pytest.raises(ConfigError, match=message):
        run_tiny(tmp_path / "run", override, *tokens)
    assert list(tmp_path.iterdir()) == []


def test_too_few_rows_to_hold_some_out_are_found_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "split_holdout", lambda task, keys: (np.arange(len(keys)), np.arange(0)))
    with pytest.raises(DataError, match="too few rows"):
        run_tiny(tmp_path / "run", "joint.selection.on=holdout")
    assert list(tmp_path.iterdir()) == []
