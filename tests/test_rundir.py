"""The run directory: the published layout, no way out of it, and nothing lost without a flag."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.errors import ConfigError
from mtl.rundir import RunDirectory, StageDirectory, prepare_run_directory


def test_layout_is_the_published_one(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    names = {run.config: "config.yaml", run.environment: "environment.json", run.result: "result.json"}
    assert all(path == tmp_path / name for path, name in names.items())
    assert run.stage("joint").path == tmp_path / "joint"
    assert run.stage("single", "glue/rte").path == tmp_path / "single/glue/rte"
    stage = run.stage("finetune", "glue/sst2")
    base = tmp_path / "finetune/glue/sst2"
    assert stage.path == base
    assert stage.metrics == base / "metrics.jsonl"
    assert stage.tensorboard == base / "tensorboard"
    assert stage.sequence == base / "sequence.npz"
    assert stage.checkpoints == base / "checkpoints"
    assert stage.predictions("glue/mnli", "dev_matched") == base / "predictions/glue/mnli/dev_matched.parquet"


@pytest.mark.parametrize(("stage", "task"), [("joint", "glue/rte"), ("single", None), ("finetune", None), ("x", None)])
def test_stage_and_task_must_fit(tmp_path: Path, stage: str, task: str | None) -> None:
    with pytest.raises(ConfigError):
        RunDirectory(tmp_path).stage(stage, task)


@pytest.mark.parametrize(
    "task", ["../x", "a/..", "./a", "a/b/c", "/etc", "a", "a/", "a/b\0", "a/b\n", "a/" + "x" * 65, "a/NUL", "con.x/a"]
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, task: str) -> None:
    run = RunDirectory(tmp_path)
    with pytest.raises(ConfigError):
        run.stage("single", task)
    with pytest.raises(ConfigError):
        run.stage("joint").predictions(task, "dev")


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_accepted_name_stays_two_levels_below_its_stage(task: str, split: str) -> None:
    root = Path("runs/example")
    try:
        path = StageDirectory(root).predictions(f"suite/{task}", split)
    except ConfigError:
        return
    assert path.parent.parent.parent == root / "predictions"
    assert "/" not in task + split
    assert ".." not in path.parts


def test_a_link_out_of_the_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run/single").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="link"):
        RunDirectory(tmp_path / "run").stage("single", "glue/rte")


def _old_run(path: Path) -> None:
    (path / "joint").mkdir(parents=True)
    (path / "joint/metrics.jsonl").write_text("{}\n")
    (path / "config.yaml").write_text("seed: 1\n")


def test_a_new_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    run = prepare_run_directory(tmp_path / "a/b", resume=False, overwrite=False)
    assert run.path.is_dir()
    prepare_run_directory(run.path, resume=False, overwrite=False)  # empty: still new


def test_an_existing_run_needs_a_flag_and_the_message_names_both(tmp_path: Path) -> None:
    _old_run(tmp_path)
    with pytest.raises(ConfigError, match=r"--resume.*--overwrite") as caught:
        prepare_run_directory(tmp_path, resume=False, overwrite=False)
    assert caught.value.exit_code == 2
    assert (tmp_path / "joint/metrics.jsonl").exists()


def test_overwrite_empties_the_directory_but_keeps_the_lock_and_what_links_point_to(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    _old_run(run)
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    (run / "single").symlink_to(elsewhere)
    (run / "run.lock").write_text("{}")
    prepare_run_directory(run, resume=False, overwrite=True)
    assert [entry.name for entry in run.iterdir()] == ["run.lock"]
    assert (elsewhere / "kept").exists()


def test_overwrite_refuses_what_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        prepare_run_directory(tmp_path, resume=False, overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


def test_overwrite_refuses_what_holds_somebody_elses_files(tmp_path: Path) -> None:
    _old_run(tmp_path)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"thesis\.tex"):
        prepare_run_directory(tmp_path, resume=False, overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


def test_resume_keeps_everything(tmp_path: Path) -> None:
    _old_run(tmp_path)
    prepare_run_directory(tmp_path, resume=True, overwrite=False)
    assert (tmp_path / "joint/metrics.jsonl").read_text() == "{}\n"


def test_resume_of_nothing_is_refused_and_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to resume"):
        prepare_run_directory(tmp_path / "absent", resume=True, overwrite=False)
    assert not (tmp_path / "absent").exists()


def test_both_flags_and_a_file_in_the_way_are_refused(tmp_path: Path) -> None:
    _old_run(tmp_path / "run")
    with pytest.raises(ConfigError):
        prepare_run_directory(tmp_path / "run", resume=True, overwrite=True)
    with pytest.raises(ConfigError, match="is a file"):
        prepare_run_directory(tmp_path / "run/config.yaml", resume=False, overwrite=True)


def test_a_lock_alone_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("{}")
    (tmp_path / ".run.lock.0123.tmp").write_text("{}")  # Another process, trying to take it.
    prepare_run_directory(tmp_path, resume=False, overwrite=False)
    with pytest.raises(ConfigError, match="nothing to resume"):
        prepare_run_directory(tmp_path, resume=True, overwrite=False)
