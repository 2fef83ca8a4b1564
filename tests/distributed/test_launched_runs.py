"""`training.devices`: a run that starts its own ranks, from the command line and from Python."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

import mtl
from mtl.config.sampling import SamplingSettings
from mtl.errors import ConfigError, LostRankError, RelayedError
from mtl.runtime import launch
from mtl.runtime.ranks import ALONE, Ranks
from mtl.runtime.torchrun import launched_ranks, leave_error, this_rank
from mtl.stages import devices, environment
from mtl.tasks import registry
from tests.distributed.test_stopped_and_lost_ranks import assert_one_result
from tests.integration.tiny_runs import run_tiny, settings, tiny_config, wait_for_step

LONG = ("stages=[joint]", "training.updates=60", "checkpoint.every=50", "training.devices=2")


@contextmanager
def started(words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """``mtl run`` in a process of its own, which is gone at the end, and the ranks it started with it."""
    command = [sys.executable, "-m", "mtl", "run", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            # Only the children of one that still runs: afterwards their numbers may be anybody's.
            for rank in _children(process.pid) if process.poll() is None else []:
                _kill(rank)
            process.kill()


def _children(parent: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _kill(number: int) -> None:
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.timeout(300)
def test_signals_reach_the_ranks_that_were_started_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with started(settings(out, *LONG)) as process:
        wait_for_step(process, out, 3)
        ranks = _children(process.pid)
        process.send_signal(signal.SIGUSR1)
        printed, messages = (text.decode() for text in process.communicate(timeout=90))
        assert process.returncode == 75, messages
    assert len(ranks) >= 2
    assert printed == ""
    assert messages.count("mtl run: stopped by SIGUSR1; --resume continues") == 1
    assert messages.count("joint: training") == 1
    for noise in ("Traceback", "====", "torch.distributed", "[rank 1]"):
        assert noise not in messages
    [stopped] = (out / "joint/checkpoints").iterdir()
    assert stopped.name.startswith("step-")

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    monkeypatch.delenv("TORCHELASTIC_SIGNALS_TO_HANDLE", raising=False)
    result = mtl.run(mtl.load_config([], settings(out, *LONG)), resume=True)
    assert result.status == "complete"
    assert {number: signal.getsignal(number) for number in before} == before
    assert "TORCHELASTIC_SIGNALS_TO_HANDLE" not in os.environ
    run_tiny(tmp_path / "whole", *LONG, "training.devices=1")
    assert_one_result(out, tmp_path / "whole")


def launched_as(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def never_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch_ranks(*arguments: Any) -> None:
        pytest.fail("processes were started")

    launched_as(monkeypatch)
    monkeypatch.setattr(devices, "launch_ranks", launch_ranks)


@pytest.mark.usefixtures("never_launched")
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.device=cuda"], "2, but torch sees 1 GPUs: lower it"),
        (["training.device=auto"], "2, but torch sees 1 GPUs: lower it"),
        (["training.device=cuda:0"], "'cuda:0' names one GPU, but training.devices is 2"),
        (["training.device=cpu", "joint.training.devices=3"], r"training.devices is 3 in joint but 2 in the run"),
        (["training.device=cpu", "tasks=[mini/ax]"], "unknown task 'mini/ax'"),
        (["training.device=cpu", "data.max_length=128"], "data.max_length is 128, but encoder.positions only 64"),
    ],
)
def test_a_config_that_is_refused_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: list[str], message: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    config = tiny_config(tmp_path / "run", "training.devices=2", *overrides)
    with pytest.raises(ConfigError, match=message):
        mtl.run(config)
    assert not (tmp_path / "run").exists()


class HereOnly(SamplingSettings):
    kind: Literal["here_only"] = "here_only"


@pytest.mark.usefixtures("never_launched")
def test_what_is_registered_in_this_process_alone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    mtl.register_task(registry.get("mini/entail2").model_copy(update={"name": "here/only"}))
    config = tiny_config(tmp_path / "run", "training.devices=2", "training.device=cpu", tasks=["here/only"])
    with pytest.raises(ConfigError, match=r"in which here/only would not be registered: name the modules.*plugins="):
        mtl.run(config)
    sampled = config.model_copy(update={"sampling": HereOnly()})
    monkeypatch.setattr(devices, "resolve_stage", lambda config, stage, task: config)
    assert list(devices._known_here_only(sampled, [])) == ["HereOnly"]
    words: list[str] = []
    monkeypatch.setattr(devices, "launch_ranks", lambda number, arguments: words.extend(arguments))
    monkeypatch.setattr(devices, "read_result", lambda path: None)
    mtl.run(config, plugins=["my_samplers"], resume=True)
    assert words[0] == "run"
    assert words[2:] == ["--resume", "--plugin", "my_samplers"]


def test_torchrun_and_the_config_agree_on_the_number_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched_as(monkeypatch, WORLD_SIZE="2", RANK="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    with pytest.raises(ConfigError, match=r"training.devices=3, but torchrun started 2 ranks"):
        mtl.run(tiny_config(tmp_path / "run", "training.devices=3"))
    assert this_rank() == 1
    launched_as(monkeypatch, WORLD_SIZE="1", RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    with pytest.raises(ConfigError, match=r"training.devices=2, but torchrun started 1 ranks"):
        mtl.run(tiny_config(tmp_path / "run", "training.devices=2"))
    launched_as(monkeypatch, WORLD_SIZE="2", RANK="0")
    with pytest.raises(ConfigError, match="MASTER_ADDR, MASTER_PORT is not set: start the ranks with torchrun"):
        launched_ranks()
    launched_as(monkeypatch, WORLD_SIZE="two")
    with pytest.raises(ConfigError, match="WORLD_SIZE is 'two', not a number"):
        launched_ranks()
    assert this_rank() == 0


def test_what_became_of_the_ranks_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(codes: dict[int, int], *, passed_on: signal.Signals | None = None, **reported: int) -> Any:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        for message, code in reported.items():
            (place / message).mkdir(parents=True)
            error = ConfigError(message)
            error.exit_code = code
            monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(place / message / "error.json"))
            leave_error(error)
        place.mkdir(exist_ok=True)
        return launch._outcome(launch._reported(place), codes, passed_on)

    relayed = outcome({0: 75, 1: -15}, stopped=75)
    assert (type(relayed), relayed.exit_code, str(relayed)) == (RelayedError, 75, "stopped")
    assert outcome({0: 1, 1: 3}, lost=1, data=3).exit_code == 3
    assert outcome({}, passed_on=signal.SIGINT, stopped=130).exit_code == 130
    assert outcome({}, passed_on=signal.SIGTERM).exit_code == 143
    killed = outcome({0: 1, 1: -9}, lost=1)
    assert isinstance(killed, LostRankError)
    assert str(killed) == "rank 1 was killed by SIGKILL; --resume continues from the last checkpoint"
    assert str(outcome({0: 1, 1: -15}, memory=1)) == "memory"
    assert "its own message says why" in str(outcome({0: 1, 1: -15}))
    assert "rank 0 was killed by SIGTERM" in str(outcome({0: -15}))


def test_cores_are_shared_by_the_ranks_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "usable_cores", lambda: 16)
    launched_as(monkeypatch, WORLD_SIZE="8", RANK="0", LOCAL_WORLD_SIZE="4", MASTER_ADDR="h", MASTER_PORT="1")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment._default_threads(Ranks(0, 8)) == 4
    assert environment._default_threads(ALONE) == torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert environment._default_threads(Ranks(0, 8)) == torch.get_num_threads()


def test_the_plan_names_the_devices_and_is_the_same(tmp_path: Path) -> None:
    alone, shared = (mtl.plan(tiny_config(tmp_path, f"training.devices={number}")) for number in (1, 2))
    assert (alone.devices, shared.devices) == (1, 2)
    assert alone.stages == shared.stages
