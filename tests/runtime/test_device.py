"""The device: no silent fallback; the description: plain JSON with what a reader of results needs."""

import json
import subprocess
from pathlib import Path

import pytest
import torch

from mtl.errors import ConfigError
from mtl.runtime import device


def _pretend_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_gpus(monkeypatch, 1)
    assert device.choose_device("auto") == torch.device("cuda")
    _pretend_gpus(monkeypatch, 0)
    assert device.choose_device("auto") == torch.device("cpu")


def test_cpu_stays_cpu_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_gpus(monkeypatch, 1)
    assert device.choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(("requested", "gpus"), [("cuda", 0), ("cuda:0", 0), ("cuda:2", 2)])
def test_an_absent_gpu_is_an_error(monkeypatch: pytest.MonkeyPatch, requested: str, gpus: int) -> None:
    _pretend_gpus(monkeypatch, gpus)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(ConfigError, match=f"{gpus} GPUs.*'7'"):
        device.choose_device(requested)


def test_a_present_gpu_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_gpus(monkeypatch, 2)
    assert device.choose_device("cuda:1") == torch.device("cuda:1")


@pytest.mark.parametrize("requested", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "", "mps"])
def test_unknown_names_are_refused(monkeypatch: pytest.MonkeyPatch, requested: str) -> None:
    _pretend_gpus(monkeypatch, 4)
    with pytest.raises(ConfigError, match="auto, cpu, cuda"):
        device.choose_device(requested)


def test_hardware_is_plain_json() -> None:
    hardware = device.describe_hardware()
    assert json.loads(json.dumps(hardware)) == hardware
    assert isinstance(hardware["cores"], int)
    assert hardware["cores"] >= 1
    assert isinstance(hardware["memory_bytes"], int)
    assert hardware["memory_bytes"] > 2**28


def test_versions_name_what_numbers_depend_on() -> None:
    found = device.versions()
    assert {"python", "torch", "transformers", "numpy"} <= set(found)
    assert found["torch"] == torch.__version__


def test_git_commit_is_the_checked_out_one_and_says_when_files_differ(tmp_path: Path) -> None:
    assert device.git_commit(tmp_path) is None
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    (tmp_path / "a").write_text("1")
    for arguments in (["init", "-q"], ["add", "a"], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    commit = device.git_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    (tmp_path / "a").write_text("2")
    assert device.git_commit(tmp_path) == f"{commit}-modified"
    assert device.git_commit(tmp_path / "absent") is None
