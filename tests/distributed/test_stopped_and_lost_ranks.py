"""Ranks that are signalled, killed, or meet an error alone: all end, nothing is lost, and the run goes on."""

import json
import shutil
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import load_tensors, verify_checkpoint
from tests.distributed import disturbances
from tests.distributed.command_ranks import running
from tests.integration.tiny_runs import records, run_tiny, settings

OVERRIDES = (
    "stages=[joint]",
    "training.updates=18",
    "checkpoint.every=3",
    "checkpoint.keep=2",
    "evaluation.every=15",
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run in one process, undisturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    run_tiny(out, *OVERRIDES)
    return out


def steps(out: Path) -> list[int]:
    """The checkpoints to resume from; all of them are whole."""
    found = sorted((out / "joint/checkpoints").glob("step-*"))
    for checkpoint in found:
        verify_checkpoint(checkpoint)
    return [int(checkpoint.name.removeprefix("step-")) for checkpoint in found]


def assert_one_result(out: Path, whole: Path) -> None:
    """The examples of every update are the same; losses and weights are, up to the order of additions."""
    here, there = RunDirectory(out).stage("joint"), RunDirectory(whole).stage("joint")
    with np.load(here.sequence) as one, np.load(there.sequence) as other:
        assert {name: one[name].tolist() for name in one} == {name: other[name].tolist() for name in other}
    found, expected = records(here), records(there)
    assert [record["step"] for record in found] == [record["step"] for record in expected]
    for one, other in zip(found, expected, strict=True):
        losses = {name: value for name, value in other.items() if name.endswith("/loss")}
        assert {name: one[name] for name in losses} == pytest.approx(losses, rel=1e-5)
    for name in ("model", "heads"):
        one, other = (load_tensors(place.checkpoints / "last", name) for place in (here, there))
        assert set(one) == set(other)
        for key, expected_tensor in other.items():
            if key.endswith("key.bias"):
                continue  # Its true gradient is zero: Adam makes steps of rounding errors, which change no output.
            scale = float(expected_tensor.abs().max())
            assert float((one[key] - expected_tensor).abs().max()) <= 1e-5 * scale, key


def end(
    size: int,
    out: Path,
    *overrides: str,
    disturbed: dict[int, disturbances.Disturbance] | None = None,
    resume: bool = True,
    codes: Sequence[int],
) -> list[str]:
    """Run on ``size`` ranks until all have ended with ``codes``, in the same minute; what each wrote to stderr."""
    place = out.with_name(f"output-{time.monotonic_ns()}")
    words = [*settings(out, *OVERRIDES, *overrides), *(["--resume"] if resume else [])]
    with running(size, words, place, disturbed) as ranks:
        assert ranks.exit_codes() == list(codes), [ranks.messages(rank) for rank in range(size)]
        assert not any(ranks.printed(rank) for rank in range(1, size))
        return [ranks.messages(rank) for rank in range(size)]


def test_any_rank_may_be_signalled_or_killed_and_others_may_go_on(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "run"
    stop = {1: partial(disturbances.signal_in_update, 4, signal.SIGTERM)}
    first, second = end(2, out, disturbed=stop, resume=False, codes=[75, 75])
    assert steps(out) == [3, 5]
    assert json.loads((out / "result.json").read_text())["status"] == "stopped"
    assert not (out / "run.lock").exists()
    assert first.count("mtl run: stopped by SIGTERM") == 1
    assert second == ""

    kill = {0: partial(disturbances.signal_in_update, 7, signal.SIGKILL)}
    _, second = end(2, out, disturbed=kill, codes=[-signal.SIGKILL, 1])
    assert steps(out) == [5, 6]
    assert (out / "run.lock").exists()
    assert second.startswith("[rank 1] mtl run: another rank of this run is gone")
    assert len(second.splitlines()) == 1

    shutil.copytree(out, tmp_path / "alone")
    run_tiny(tmp_path / "alone", *OVERRIDES, resume=True)
    assert_one_result(tmp_path / "alone", whole)

    kill = {2: partial(disturbances.signal_in_update, 10, signal.SIGKILL)}
    first, second, _ = end(3, out, disturbed=kill, codes=[1, 1, -signal.SIGKILL])
    assert "taking over" in first
    assert steps(out) == [6, 9]
    assert first.count("another rank of this run is gone") == second.count("another rank of this run is gone") == 1

    interrupt = {2: partial(disturbances.signal_in_evaluation, 1, signal.SIGINT)}
    end(3, out, disturbed=interrupt, codes=[130, 130, 130])
    assert steps(out) == [12, 15]
    end(3, out, codes=[0, 0, 0])
    assert_one_result(out, whole)
    assert json.loads((out / "environment.json").read_text())["ranks"] == 2


def test_a_signal_while_the_first_rank_loads_stops_all(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "run"
    stop = {1: partial(disturbances.signal_before_loading, signal.SIGUSR1)}
    first, second = end(2, out, disturbed=stop, resume=False, codes=[75, 75])
    assert "stopped by SIGUSR1" in first
    assert second == ""
    end(2, out, codes=[0, 0])
    assert_one_result(out, whole)


def test_an_error_of_the_program_on_one_rank_ends_the_others(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first, second = end(2, out, disturbed={0: disturbances.full_disk}, resume=False, codes=[1, 1])
    assert "No space left on device" in first
    assert second.startswith("[rank 1] mtl run: another rank of this run is gone")
    assert len(second.splitlines()) == 1


def test_an_error_is_told_once_by_the_rank_that_it_befell(tmp_path: Path) -> None:
    out = tmp_path / "run"
    missing = {1: disturbances.missing_tokenizer}
    first, second = end(2, out, disturbed=missing, resume=False, codes=[3, 3])
    assert "no tokenizer" not in first
    assert second == "[rank 1] mtl run: no tokenizer on this machine\n"
    assert not out.exists()
    everywhere = dict.fromkeys(range(2), disturbances.missing_tokenizer)
    first, second = end(2, out, disturbed=everywhere, resume=False, codes=[3, 3])
    assert first.count("mtl run: no tokenizer on this machine") == 1
    assert second == ""


def test_the_first_rank_decides_when_training_ends(tmp_path: Path) -> None:
    """Scores that differ between ranks, as on unlike machines, do not make one stop while another goes on."""
    out = tmp_path / "run"
    patience = ("selection.on=dev", "selection.patience=2", "evaluation.every=2", "data.max_train_rows=30")
    worse = {
        0: partial(disturbances.other_scores, [0.5, 0.4, 0.3]),
        1: partial(disturbances.other_scores, [0.1, 0.2, 0.3]),
    }
    end(2, out, *patience, disturbed=worse, resume=False, codes=[0, 0])
    assert json.loads((out / "joint/stage.json").read_text())["tasks"]["mini/entail2"]["selected_step"] == 2
