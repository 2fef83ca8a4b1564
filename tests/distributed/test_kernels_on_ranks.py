"""Every rank takes the optimiser's steps for itself, so all of them take these by kernels or all by torch."""

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

from mtl.config.load import load_config
from mtl.models.kernels.compiled import compiled_kernels
from mtl.runtime.ranks import ALONE, Ranks
from mtl.stages.environment import agree_on_kernels, start_hardware
from tests.distributed.rank_processes import on_ranks
from tests.distributed.toy_jobs import FEWER, mixed, train

RANKS = 2

pytestmark = pytest.mark.timeout(400)


def train_by(ranks: Ranks, out: Path) -> None:
    """A native training with whatever kernels the ranks agree on; which these were is saved."""
    config = load_config("quickstart", ["training.device=cpu", "training.threads=1"])
    ranks.together(lambda: start_hardware(config, None, ranks))
    agree_on_kernels(ranks)
    for needs in ("nothing", "gradients"):
        train(mixed(ranks, way="native", needs=needs), ranks, out / needs, updates=FEWER)
    (out / f"kernels-{ranks.rank}.txt").write_text("torch" if compiled_kernels() is None else "compiled")


def train_where_one_has_no_compiler(ranks: Ranks, out: Path) -> None:
    if ranks.rank == 1:
        os.environ["PATH"] = str(out)
    train_by(ranks, out)


def assert_bit_equal_ranks(out: Path, kernels: str) -> None:
    assert [(out / f"kernels-{rank}.txt").read_text() for rank in range(RANKS)] == [kernels] * RANKS
    for needs in ("nothing", "gradients"):
        first, other = (np.load(out / needs / f"weights-{rank}.npz") for rank in range(RANKS))
        for name, expected in first.items():
            np.testing.assert_array_equal(other[name], expected, err_msg=name)


def test_ranks_with_kernels_are_one(tmp_path: Path, compiled_library: ctypes.CDLL) -> None:
    del compiled_library  # Skips where there is no compiler.
    (tmp_path / "alone").mkdir()
    train_by(ALONE, tmp_path / "alone")
    on_ranks(train_by, RANKS, tmp_path)
    assert_bit_equal_ranks(tmp_path, "compiled")
    for needs in ("nothing", "gradients"):
        alone, together = (np.load(place / needs / "weights-0.npz") for place in (tmp_path / "alone", tmp_path))
        for name, expected in alone.items():
            # Key biases have a true gradient of zero, which Adam turns into steps made of rounding errors.
            tolerance = 1e-3 if name.endswith("key.bias") else 1e-5
            np.testing.assert_allclose(together[name], expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_where_one_has_no_compiler_none_uses_kernels(tmp_path: Path, compiled_library: ctypes.CDLL) -> None:
    del compiled_library
    on_ranks(train_where_one_has_no_compiler, RANKS, tmp_path)
    assert_bit_equal_ranks(tmp_path, "torch")
