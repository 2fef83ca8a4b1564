"""Every example is scored once, in the split's order, as if it had been alone; training goes on as before."""

from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mtl.data.batches import BatchSource
from mtl.data.store import TokenStore
from mtl.errors import StoppedError
from mtl.evaluation.evaluate import Evaluator, evaluation_batches, score_predictions
from mtl.models.multitask import MultitaskModel
from tests.training.toy_training import PAIRS, SCORES, TASKS, THREE, toy_model, toy_spec, toy_store, toy_training

CPU = torch.device("cpu")


def evaluator(tokens: int = 40, precision: Literal["fp32", "bf16"] = "fp32") -> Evaluator:
    return Evaluator(tokens, precision, CPU)


def one_by_one(model: MultitaskModel, task: str, store: TokenStore) -> np.ndarray:
    """Outputs (N, C), every example in a batch of its own."""
    source = BatchSource({task: store})
    model.eval()
    with torch.no_grad():
        rows = [model(source.evaluation_batch(task, np.array([row])))[task] for row in range(store.rows)]
    return torch.cat(rows).numpy()


@pytest.mark.parametrize("tokens", [1, 7, 33, 10_000])
@pytest.mark.parametrize("count", range(41))
def test_every_example_is_in_one_batch(count: int, tokens: int) -> None:
    lengths = np.random.default_rng(count).integers(1, 20, count)
    batches = list(evaluation_batches(lengths, tokens))
    assert sorted(place for batch in batches for place in batch.tolist()) == list(range(count))
    assert all(lengths[batch].sum() <= tokens or batch.size == 1 for batch in batches)
    assert all(batch.size for batch in batches)


@given(lengths=st.lists(st.integers(1, 50), max_size=60), tokens=st.integers(1, 200))
def test_batches_are_full_and_of_similar_lengths(lengths: list[int], tokens: int) -> None:
    array = np.array(lengths, dtype=np.int64)
    batches = list(evaluation_batches(array, tokens))
    for batch, following in pairwise(batches):
        assert array[batch].max() <= array[following].min()
        assert array[batch].sum() + array[following[0]] > tokens, "one more example would have fitted"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("tokens", [1, 37, 10_000])
def test_predictions_equal_those_one_by_one_in_the_splits_order(task: str, tokens: int) -> None:
    model, store = toy_model(dropout=0.3), toy_store(task, 23)
    predicted = evaluator(tokens).predict(model, toy_spec(task), store)
    expected = one_by_one(model, task, store)
    np.testing.assert_allclose(predicted.outputs, expected, rtol=1e-5, atol=1e-6)
    assert predicted.outputs.dtype == np.float32
    assert predicted.rows.tolist() == list(range(23))
    assert predicted.labels is not None
    assert predicted.labels.tolist() == store.labels.tolist()
    if task == SCORES:
        np.testing.assert_array_equal(predicted.predictions, predicted.outputs[:, 0])
    else:
        assert predicted.predictions.tolist() == predicted.outputs.argmax(axis=1).tolist()


def test_chosen_rows_come_in_the_order_they_were_asked_for() -> None:
    model, store = toy_model(), toy_store(THREE, 20)
    rows = np.array([7, 3, 19, 0, 11])
    predicted = evaluator().predict(model, toy_spec(THREE), store, rows)
    whole = evaluator().predict(model, toy_spec(THREE), store)
    assert predicted.rows.tolist() == rows.tolist()
    assert predicted.labels is not None
    assert predicted.labels.tolist() == store.labels[rows].tolist()
    np.testing.assert_allclose(predicted.outputs, whole.outputs[rows], rtol=1e-5, atol=1e-6)


def test_split_of_no_rows_has_no_predictions() -> None:
    predicted = evaluator().predict(toy_model(), toy_spec(THREE), toy_store(THREE, 20), np.zeros(0, dtype=np.int64))
    assert predicted.outputs.shape == (0, 3)
    assert predicted.predictions.size == 0


def test_split_without_labels_is_predicted_alike() -> None:
    model, store = toy_model(), toy_store(PAIRS, 9)
    blind = TokenStore(**{**vars(store), "labels": np.zeros(0, dtype=np.int64)})
    predicted = evaluator().predict(model, toy_spec(PAIRS), blind)
    assert predicted.labels is None
    np.testing.assert_array_equal(predicted.outputs, evaluator().predict(model, toy_spec(PAIRS), store).outputs)


@pytest.mark.parametrize("training", [True, False])
def test_mode_is_left_as_it_was_and_dropout_is_off(training: bool) -> None:
    model = toy_model(dropout=0.5).train(training)
    first, second = (evaluator().predict(model, toy_spec(THREE), toy_store(THREE)).outputs for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert all(module.training == training for module in model.modules())


def test_mode_is_restored_when_a_check_ends_the_evaluation() -> None:
    calls = []

    def stop_at_the_third() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise StoppedError("stopped")

    model = toy_model().train()
    stopping = Evaluator(20, "fp32", CPU, check=stop_at_the_third)
    with pytest.raises(StoppedError):
        stopping.predict(model, toy_spec(THREE), toy_store(THREE))
    assert model.training
    assert len(calls) == 3


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_training_goes_on_after_an_evaluation_as_without_it(precision: Literal["fp32", "bf16"]) -> None:
    """Copies of the weights that autocast keeps would be without gradients, or those from before a step."""
    plain, interrupted = (toy_training(precision=precision, dropout=0.1, optimizer={"warmup": 0.0}) for _ in range(2))
    plain.run(0, 4)
    # The caller's own region around all of it is the worst case: such copies live until the outermost region ends.
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        interrupted.run(0, 2)
        for task in TASKS:
            evaluator(40, precision).predict(interrupted.model, toy_spec(task), toy_store(task))
        before = interrupted.weights()
        interrupted.run(2, 4)
    for name, gradient in interrupted.gradients().items():
        assert torch.isfinite(gradient).all(), name
        # A key's bias has no influence on attention.
        assert gradient.abs().max() > 0 or name.endswith("key.bias"), name
    after = interrupted.weights()
    moved = [name for name in after if name.startswith("encoder/") and not torch.equal(after[name], before[name])]
    assert len(moved) >= len([name for name in after if name.startswith("encoder/")]) - 2
    assert all(torch.equal(value, plain.weights()[name]) for name, value in after.items())


def test_scores_are_those_of_the_predictions() -> None:
    model, store = toy_model(), toy_store(THREE)
    predicted = evaluator().predict(model, toy_spec(THREE), store)
    scores = score_predictions(toy_spec(THREE), predicted)
    assert scores.metrics == {"accuracy": pytest.approx(100.0 * (predicted.predictions == store.labels).mean())}
