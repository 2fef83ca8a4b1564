"""Operations are those of the closed formula, padding and look-ups not counted."""

import numpy as np
import pytest
from transformers import AlbertConfig, AlbertModel

from mtl.models.load import wrap_model
from mtl.training.flops import FlopCounter
from tests.training.toy_training import OUTPUTS, TASKS, WIDTH, toy_model, toy_training

FEED_FORWARD, LAYERS = 24, 2


def closed_form(tokens: int, squared: int, heads: float) -> float:
    """3 [T L (8 d^2 + 4 d f) + L 4 d sum s^2 + sum over sequences of 2 d^2 + 2 d C]."""
    per_token = LAYERS * (8 * WIDTH**2 + 4 * WIDTH * FEED_FORWARD)
    return 3.0 * (tokens * per_token + LAYERS * 4 * WIDTH * squared + heads)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_equals_the_closed_formula_for_bert(micro_batches: int) -> None:
    toy = toy_training(micro_batches=micro_batches)
    counter = FlopCounter.of(toy.model)
    for step in range(3):
        update = toy.update(step)
        found = counter.training(update.work)
        lengths = np.concatenate([batch.layout.sequence_lengths for batch in update.batches])
        heads = sum(
            count * (2 * WIDTH**2 + 2 * WIDTH * OUTPUTS[task]) for task, count in zip(TASKS, update.counts, strict=True)
        )
        assert found == pytest.approx(closed_form(int(lengths.sum()), int((lengths**2).sum()), heads), rel=1e-12)


def test_a_head_without_a_dense_layer_costs_its_output_alone() -> None:
    counter = FlopCounter.of(toy_model(pooling="mean"))
    assert counter.per_sequence == {task: 2.0 * WIDTH * OUTPUTS[task] for task in TASKS}


@pytest.mark.parametrize("groups", [1, 2])
def test_shared_layers_count_as_often_as_they_are_passed(groups: int) -> None:
    config = AlbertConfig(
        vocab_size=30,
        hidden_size=WIDTH,
        embedding_size=8,
        num_hidden_layers=4,
        num_hidden_groups=groups,
        num_attention_heads=2,
        intermediate_size=FEED_FORWARD,
        max_position_embeddings=32,
    )
    counter = FlopCounter.of(toy_model(encoder=wrap_model(AlbertModel(config, add_pooling_layer=False), "packed")))
    assert counter.per_token == 4 * (8 * WIDTH**2 + 4 * WIDTH * FEED_FORWARD) + 2 * 8 * WIDTH
    assert counter.per_squared_length == 4 * 4 * WIDTH
