"""How far a run is, read from the logs that it writes."""

from pathlib import Path

import pytest

from mtl.config.load import load_config
from mtl.rundir import RunDirectory
from mtl.studies.run_progress import Advance, RunProgress, updates_of

SETTINGS = ["tasks=[mini/entail2,mini/similarity]", "joint.training.updates=60", "single.training.updates=20"]
UPDATES = {("single", "mini/entail2"): 20, ("single", "mini/similarity"): 20, ("joint", None): 60}


def log(run: Path, step: int, *, stage: str = "joint", task: str | None = None, tail: str = "") -> None:
    """The run has written a record after ``step`` updates."""
    metrics = RunDirectory(run).stage(stage, task).metrics
    metrics.parent.mkdir(parents=True, exist_ok=True)
    with metrics.open("a", encoding="utf-8") as file:
        file.write(f'{{"step": {step}, "train/x/loss": 0.5}}\n{tail}')


def test_the_updates_of_every_model_are_known_before_it_runs() -> None:
    settings = ["stages=[single,joint]", *SETTINGS]
    assert updates_of(load_config("quickstart", settings)) == UPDATES
    assert updates_of(load_config("quickstart", [*settings, "joint.training.tokens_per_update=512"])) is not None
    epochs = ["stages=[joint]", "training.epochs=1", "training.tokens_per_update=512"]
    assert updates_of(load_config("quickstart", [*epochs, SETTINGS[0]])) is None


def test_missing_data_are_left_to_the_run_to_tell(tmp_path: Path) -> None:
    assert updates_of(load_config("glue_minilm", ["tasks=[glue/rte]", f"data.root={tmp_path}"])) is None


def test_the_rate_is_that_of_the_training_and_its_start_counts_once(tmp_path: Path) -> None:
    progress = RunProgress(tmp_path, UPDATES)
    assert progress.after(0.0) == Advance(0.0, None, None)
    # Five seconds of loading, then an update a second: 100 in all.
    log(tmp_path, 10, stage="single", task="mini/entail2")
    assert progress.after(15.0) == Advance(15.0, None, None)
    log(tmp_path, 20, stage="single", task="mini/entail2")
    log(tmp_path, 20, tail='{"step": 30, "tra')
    assert progress.after(45.0) == Advance(45.0, pytest.approx(105.0), pytest.approx(60.0))


def test_a_resumed_run_is_not_quicker_for_what_was_done_before(tmp_path: Path) -> None:
    log(tmp_path, 40)
    progress = RunProgress(tmp_path, UPDATES)
    log(tmp_path, 50)
    assert progress.after(20.0).whole is None
    log(tmp_path, 60)
    assert progress.after(40.0) == Advance(40.0, pytest.approx(200.0), pytest.approx(80.0))


def test_files_are_read_once_a_second(tmp_path: Path) -> None:
    progress = RunProgress(tmp_path, UPDATES)
    log(tmp_path, 10)
    progress.after(1.0)
    log(tmp_path, 50)
    assert progress.after(1.9).whole is None
    assert progress.after(2.1).whole is not None


@pytest.mark.parametrize("damage", [b"", b"\0\0\0\0\n", b'{"step": 1'])
def test_a_log_that_cannot_be_read_counts_for_nothing(damage: bytes, tmp_path: Path) -> None:
    log(tmp_path, 0)
    metrics = RunDirectory(tmp_path).stage("joint").metrics
    metrics.write_bytes(damage)
    progress = RunProgress(tmp_path, UPDATES)
    # The resumed run cuts such an end off.
    metrics.write_bytes(b"")
    log(tmp_path, 10)
    progress.after(10.0)
    log(tmp_path, 20)
    assert progress.after(20.0).whole == pytest.approx(100.0)


def test_without_a_known_end_only_time_is_told(tmp_path: Path) -> None:
    progress = RunProgress(tmp_path, None)
    log(tmp_path, 10)
    assert progress.after(10.0) == Advance(10.0, None, None)
    log(tmp_path, 20)
    assert progress.after(20.0) == Advance(20.0, None, None)
