"""Every test runs offline, on one thread, without the user's own data and cache directories."""

import ctypes
import os
from pathlib import Path

import hypothesis
import pytest

# Set before anything imports a library that reads them once, at import.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Sums depend on the number of threads, so golden values need a fixed one; two pytest workers also share few cores.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.pop("MTL_DATA_DIR", None)

from mtl.errors import ConfigError
from mtl.models.kernels import compiled
from mtl.tasks import registry

hypothesis.settings.register_profile("mtl", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("mtl")

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests never read or fill the cache in the user's home."""
    os.environ["MTL_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that a test registers are gone after it."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))


@pytest.fixture(autouse=True)
def no_kernels_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run chose for its process is forgotten: a test computes by torch until it asks for something else."""
    monkeypatch.setattr(compiled, "_loaded", None)


@pytest.fixture
def compiled_library() -> ctypes.CDLL:
    """The compiled kernels, in use until the test is over; the test is skipped where they cannot be had."""
    try:
        compiled.choose_kernels("compiled")
    except ConfigError as error:
        pytest.skip(str(error))
    library = compiled.compiled_kernels()
    assert library is not None
    return library


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The root of the real benchmark files (`glue/`, `clue/`); the test is skipped where there are none.

    MTL_TEST_DATA_DIR names it; otherwise `shared/data` beside the repository is tried.
    """
    named = os.environ.get("MTL_TEST_DATA_DIR")
    root = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not root.is_dir():
        pytest.skip(f"no real data at {root}; set MTL_TEST_DATA_DIR to a directory that holds glue/ and clue/")
    return root


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY
