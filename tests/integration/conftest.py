"""Runs that several tests look at; no test changes them."""

import functools
from collections.abc import Iterator

import pytest
from tiny_runs import JOINT, TASKS, run_tiny

from mtl.rundir import RunDirectory
from mtl.tasks import mini


@pytest.fixture(scope="session", autouse=True)
def rows_are_generated_once() -> Iterator[None]:
    """Every start generates the mini tasks' rows to know their fingerprint, which is most of a tiny run's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mini, "generate", functools.cache(mini.generate))
        yield


@pytest.fixture(scope="session")
def full_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """All three stages over three tasks."""
    out = tmp_path_factory.mktemp("full") / "run"
    run_tiny(out, "seed=3", tasks=TASKS)
    return RunDirectory(out)


@pytest.fixture(scope="session")
def joint_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A joint stage over two tasks that kept its last two checkpoints, and was evaluated in between."""
    out = tmp_path_factory.mktemp("joint") / "run"
    run_tiny(out, *JOINT)
    return RunDirectory(out)
