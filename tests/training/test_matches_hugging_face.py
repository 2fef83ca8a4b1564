"""A single-task training is the one that everybody knows: the same losses as a plain loop over a Hugging Face model."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import BertForSequenceClassification, get_linear_schedule_with_warmup

from mtl.data.batches import PackedBatch
from tests.training.toy_training import OUTPUTS, PAIRS, SCORES, THREE, Toy, toy_bert, toy_model, toy_training

UPDATES = 20
SETTINGS = {"learning_rate": 2e-3, "weight_decay": 0.05, "warmup": 0.15, "clip_norm": 1.0}


def hugging_face_twin(toy: Toy, task: str) -> BertForSequenceClassification:
    """Hugging Face's own classifier with the same weights."""
    config = copy.deepcopy(toy_bert().config)
    config.num_labels = OUTPUTS[task]
    with torch.random.fork_rng(devices=[]):
        twin = BertForSequenceClassification(config)
    left = twin.bert.load_state_dict(toy.model.encoder.model.state_dict(), strict=False)
    assert set(left.missing_keys) == {"pooler.dense.weight", "pooler.dense.bias"}
    assert not left.unexpected_keys
    head = toy.model.head_module(task)
    twin.bert.pooler.dense.load_state_dict(head.dense.state_dict())  # type: ignore[operator, union-attr]
    twin.classifier.load_state_dict(head.output.state_dict())  # type: ignore[operator, union-attr]
    return twin.train()


def padded(batch: PackedBatch, task: str) -> dict[str, Tensor]:
    """The batch as Hugging Face's models take it."""
    lengths = batch.layout.sequence_lengths.tolist()
    tokens = batch.token_ids.split(lengths)
    columns = {
        "input_ids": tokens,
        "token_type_ids": batch.type_ids.split(lengths),
        "attention_mask": [torch.ones_like(row) for row in tokens],
    }
    return {
        **{name: nn.utils.rnn.pad_sequence(list(rows), batch_first=True) for name, rows in columns.items()},
        "labels": batch.targets[task],
    }


def plain_losses(toy: Toy, task: str) -> list[float]:
    """The losses of a training loop as in any tutorial."""
    model = hugging_face_twin(toy, task)
    plain = [parameter for name, parameter in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    decayed = [
        parameter for name, parameter in model.named_parameters() if "bias" not in name and "LayerNorm" not in name
    ]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": SETTINGS["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=SETTINGS["learning_rate"],
        eps=1e-8,
    )
    schedule = get_linear_schedule_with_warmup(optimizer, int(SETTINGS["warmup"] * UPDATES), UPDATES)
    losses = []
    for step in range(UPDATES):
        loss = model(**padded(toy.update(step).batches[0], task)).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), SETTINGS["clip_norm"])
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return losses


def training(task: str) -> Toy:
    """A single-task training whose head starts with weights large enough for the gradient to be clipped."""
    model = toy_model((task,))
    model.head_module(task).output.weight.data.mul_(20.0)  # type: ignore[operator, union-attr]
    return toy_training(tasks=(task,), model=model, total=UPDATES, rows=8, optimizer=SETTINGS)


@pytest.mark.parametrize("task", [PAIRS, THREE, SCORES])
def test_losses_equal_those_of_a_plain_hugging_face_loop(task: str) -> None:
    toy = training(task)
    expected = plain_losses(toy, task)
    results = toy.run(0, UPDATES)
    losses = [float(result.losses[0]) for result in results]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert len(set(losses)) == UPDATES, "losses that do not move would agree with anything"
    assert max(float(result.gradient_norm) for result in results) > SETTINGS["clip_norm"], "nothing was clipped"
