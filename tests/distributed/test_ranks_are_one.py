"""One process, two and three gloo ranks: the same updates, gradients, weights and scores."""

import dataclasses
import gc
import json
import weakref
from pathlib import Path

import numpy as np
import pytest

from mtl.errors import MtlError
from mtl.runtime.ranks import ALONE, Ranks
from mtl.training.memory import MemoryWatch
from mtl.training.reduction import GradientReduction
from tests.distributed.rank_processes import on_ranks
from tests.distributed.toy_jobs import EVALUATED, NEEDS, UPDATES, everything, mixed
from tests.training.toy_training import toy_model

TRAININGS = [f"{needs}-{micro_batches}" for needs in NEEDS for micro_batches in (1, 2)]
TRAININGS += ["equal", "native-nothing", "native-gradients"]
SIZES = (2, 3)

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Where 1, 2 and 3 ranks saved what they computed."""
    places = {size: tmp_path_factory.mktemp(f"ranks{size}") for size in (1, *SIZES)}
    everything(ALONE, places[1])
    for size in SIZES:
        on_ranks(everything, size, places[size])
    return places


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("training", TRAININGS)
def test_losses_norms_and_final_weights_are_those_of_one_rank(
    computed: dict[int, Path], training: str, size: int
) -> None:
    for name in ("numbers", "weights"):
        alone = np.load(computed[1] / training / f"{name}-0.npz")
        together = np.load(computed[size] / training / f"{name}-0.npz")
        assert set(alone) == set(together)
        for key, expected in alone.items():
            # Key biases have a true gradient of zero, which Adam turns into steps made of rounding errors.
            tolerance = 1e-3 if key.endswith("key.bias") else 1e-5
            scale = np.nanmax(np.abs(expected))
            np.testing.assert_allclose(together[key], expected, rtol=0, atol=tolerance * scale, err_msg=key)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("training", TRAININGS)
def test_all_ranks_hold_bit_equal_weights_and_losses(computed: dict[int, Path], training: str, size: int) -> None:
    for name in ("numbers", "weights"):
        first = np.load(computed[size] / training / f"{name}-0.npz")
        for rank in range(1, size):
            other = np.load(computed[size] / training / f"{name}-{rank}.npz")
            for key, expected in first.items():
                np.testing.assert_array_equal(other[key], expected)


@pytest.mark.parametrize("size", SIZES)
def test_each_update_holds_the_same_examples_each_on_one_rank(computed: dict[int, Path], size: int) -> None:
    def rows(ranks: int) -> list[list[list[list[int]]]]:
        place = computed[ranks] / "nothing-2"
        return [json.loads((place / f"rows-{rank}.json").read_text()) for rank in range(ranks)]

    [alone], together = rows(1), rows(size)
    lonely = absent = idle = 0
    for step in range(UPDATES):
        dealt = [tuple(row) for rank in together for row in rank[step]]
        assert sorted(dealt) == sorted(map(tuple, alone[step]))
        tasks = [{task for task, _ in rank[step]} for rank in together]
        present = set().union(*tasks)
        lonely += any(task not in held for held in tasks for task in present)
        absent += len(present) < 3
        idle += size == 3 and any(not held for held in tasks)
    # What is claimed has to have happened: tasks absent on a rank, and absent from the update.
    assert lonely > 10
    assert absent > 10


@pytest.mark.parametrize("size", SIZES)
def test_every_example_is_scored_once_whatever_the_number_of_examples(computed: dict[int, Path], size: int) -> None:
    alone = np.load(computed[1] / "evaluated" / "outputs-0.npz")
    assert len(alone) == 2 * len(EVALUATED)
    for rank in range(size):
        together = np.load(computed[size] / "evaluated" / f"outputs-{rank}.npz")
        for key, expected in alone.items():
            assert (expected != 0.0).any()
            np.testing.assert_array_equal(together[key], expected)


@pytest.mark.parametrize("needs", [*NEEDS, "backward"])
@pytest.mark.parametrize("size", SIZES)
def test_out_of_memory_on_one_rank_changes_no_update(computed: dict[int, Path], needs: str, size: int) -> None:
    place = computed[size] / "short of memory" / needs
    expected = np.load(computed[1] / f"{needs if needs in NEEDS else 'nothing'}-1" / "numbers-0.npz")
    found = np.load(place / "numbers-0.npz")
    for key in ("losses", "norms"):
        np.testing.assert_allclose(found[key], expected[key][: len(found[key])], rtol=2e-5)
    cut = json.loads((place / f"rows-{size - 1}.json").read_text())
    assert sum(map(len, cut)) > 0


def test_parameters_that_are_not_trained_are_not_summed() -> None:
    model = toy_model()
    frozen = next(model.encoder.parameters()).requires_grad_(False)
    GradientReduction(model, Ranks(0, 2))
    assert frozen.grad is None


def test_a_model_is_gone_after_its_training() -> None:
    model = toy_model()
    reduction, kept = GradientReduction(model, Ranks(0, 2)), weakref.ref(model)
    del model, reduction
    gc.collect()
    assert kept() is None


def test_long_examples_are_tried_one_by_one_after_memory_ran_out_on_shorter_ones() -> None:
    toy, memory = mixed(ALONE), MemoryWatch()
    update = toy.update(0)
    memory.give_up(dataclasses.replace(update, micro_batches=10 * update.plan.rows.size), ALONE)
    fitted = memory.fitted(update, toy.updater._preparation)
    assert fitted.micro_batches == update.plan.rows.size
    with pytest.raises(MtlError, match="out of memory at update 0, with one example in each"):
        toy.updater._preparation.halved(fitted)
