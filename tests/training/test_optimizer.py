"""The optimiser: which rate and decay every parameter has, one clip by the global norm, and a state that comes back."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AlbertConfig, AlbertModel

from mtl.config.encoder import SequenceHeadSettings
from mtl.config.training import OptimizerSettings
from mtl.errors import DataError, MtlError
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.training.optimizer import Optimizer, named_parameters
from tests.training.toy_training import PAIRS, SCORES, TASKS, THREE, WIDTH, toy_bert, toy_model, toy_training

RATE = 1e-3
ON = torch.zeros(())


def groups_by_name(model: MultitaskModel, **settings: Any) -> dict[str, dict[str, float]]:
    """Base rate and decay of every parameter."""
    heads = {task: SequenceHeadSettings(learning_rate=7e-3 if task == THREE else None) for task in TASKS}
    optimizer = Optimizer(model, OptimizerSettings(learning_rate=RATE, **settings), heads, 10, [])
    names = {parameter: name for name, parameter in named_parameters(model).items()}
    found: dict[str, dict[str, float]] = {}
    for group in optimizer._adamw.param_groups:
        for parameter in group["params"]:
            assert names[parameter] not in found, "a parameter in two groups is stepped twice"
            found[names[parameter]] = {"rate": group["base_rate"], "decay": group["weight_decay"]}
    assert found.keys() == set(names.values())
    return found


def test_biases_and_norms_do_not_decay() -> None:
    found = groups_by_name(toy_model(), weight_decay=0.03)
    for name, group in found.items():
        plain = name.endswith("bias") or "LayerNorm" in name
        assert group["decay"] == (0.0 if plain else 0.03), name
    assert any("LayerNorm.weight" in name for name in found)


def test_a_head_may_have_a_rate_of_its_own() -> None:
    for name, group in groups_by_name(toy_model()).items():
        assert group["rate"] == (7e-3 if name.startswith(THREE) else RATE), name


def test_rates_fall_layer_by_layer_towards_the_embeddings() -> None:
    model = toy_model(encoder=wrap_model(toy_bert(layers=3), "packed"))
    for name, group in groups_by_name(model, layer_decay=0.5).items():
        if name.startswith(THREE):
            continue
        distance = 0
        if ".layer." in name:
            distance = 2 - int(name.split(".layer.")[1].split(".")[0])
        elif "embeddings" in name:
            distance = 3
        assert group["rate"] == pytest.approx(RATE * 0.5**distance), name


@pytest.mark.parametrize(("groups", "distances"), [(1, [0]), (2, [2, 0])])
def test_shared_layers_of_albert_count_as_their_last_use(groups: int, distances: list[int]) -> None:
    config = AlbertConfig(
        vocab_size=30,
        hidden_size=WIDTH,
        embedding_size=8,
        num_hidden_layers=4,
        num_hidden_groups=groups,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
    )
    model = toy_model(encoder=wrap_model(AlbertModel(config, add_pooling_layer=False), "packed"))
    for name, group in groups_by_name(model, layer_decay=0.5).items():
        if "albert_layer_groups" in name:
            distance = distances[int(name.split("albert_layer_groups.")[1].split(".")[0])]
            assert group["rate"] == pytest.approx(RATE * 0.5**distance), name
        elif "embedding" in name:
            assert group["rate"] == pytest.approx(RATE * 0.5**4), name


@pytest.mark.parametrize("limit", [0.5, 1e6, None])
def test_clips_once_by_the_norm_over_encoder_and_heads(limit: float | None) -> None:
    model = toy_model()
    heads = {task: SequenceHeadSettings() for task in TASKS}
    optimizer = Optimizer(model, OptimizerSettings(clip_norm=limit), heads, 10, [])
    named = named_parameters(model)
    absent = {name for name in named if name.startswith(SCORES)}
    before = {}
    for number, (name, parameter) in enumerate(named.items()):
        if name not in absent:
            parameter.grad = torch.full_like(parameter, 0.01 * (number % 7 - 3))
            before[name] = parameter.grad.clone()
    norm = torch.cat([value.flatten() for value in before.values()]).norm()
    assert norm > 0.5
    torch.testing.assert_close(optimizer.norm(), norm)
    optimizer.step(0, ON, norm)
    factor = 1.0 if limit is None else min(1.0, limit / float(norm))
    for name, value in before.items():
        torch.testing.assert_close(named[name].grad, value * factor, rtol=1e-4, atol=0.0)
    assert all(named[name].grad is None for name in absent)


def test_step_follows_the_closed_form_of_adamw() -> None:
    model = toy_model((PAIRS,))
    settings = OptimizerSettings(learning_rate=0.01, weight_decay=0.1, warmup=0.0, decay="constant")
    optimizer = Optimizer(model, settings, {PAIRS: SequenceHeadSettings()}, 10, [])
    weight = named_parameters(model)[f"{PAIRS}/output.weight"]
    start, gradient = weight.detach().clone(), torch.linspace(-1.0, 1.0, weight.numel()).view_as(weight)
    weight.grad = gradient.clone()
    optimizer.step(0, ON)
    # After one step the corrected moments are g and g^2.
    expected = start * (1 - 0.01 * 0.1) - 0.01 * gradient / (gradient.abs() + 1e-8)
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-5, atol=1e-7)


def test_skipped_step_changes_neither_weights_nor_state() -> None:
    toy = toy_training(optimizer={"warmup": 0.0})
    toy.run(0, 2)
    before, state = toy.weights(), {name: value.clone() for name, value in toy.optimizer.state_tensors().items()}
    toy.optimizer.step(2, torch.ones(()))
    assert all(torch.equal(value, before[name]) for name, value in toy.weights().items())
    assert all(torch.equal(value, state[name]) for name, value in toy.optimizer.state_tensors().items())
    toy.optimizer.step(2, ON)
    assert not all(torch.equal(value, before[name]) for name, value in toy.weights().items())


def test_no_memory_for_the_moments_is_no_matter_of_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_training()

    def exhausted() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(toy.optimizer._adamw, "step", exhausted)
    with pytest.raises(MtlError, match="out of memory in the optimiser's step, for which smaller micro-batches"):
        toy.run(0, 1)


def test_a_norm_within_the_limit_changes_no_gradient() -> None:
    toy = toy_training(optimizer={"clip_norm": 1e6})
    toy.run(0, 1)
    clipped, free = toy.gradients(), toy_training(optimizer={"clip_norm": None})
    free.run(0, 1)
    assert all(torch.equal(value, clipped[name]) for name, value in free.gradients().items())


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_the_norm_over_the_rows_that_were_read_is_that_of_all(micro_batches: int) -> None:
    toy = toy_training(
        model=toy_model(encoder=wrap_model(toy_bert(), "native")),
        micro_batches=micro_batches,
        optimizer={"clip_norm": None},
    )
    norms = [float(result.gradient_norm) for result in toy.run(0, 2)]
    whole = torch.cat([gradient.flatten() for gradient in toy.gradients().values()]).norm()
    assert norms[-1] == pytest.approx(float(whole), rel=1e-5)
    [kept] = toy.model.encoder.kept_gradients
    touched = kept.touched()
    assert touched is not None
    assert touched.numel() < kept.table.shape[0]


def test_state_belongs_to_its_parameters() -> None:
    toy = toy_training()
    toy.run(0, 2)
    state = toy.optimizer.state_tensors()
    with pytest.raises(DataError, match="toy/other"):
        toy.optimizer.load_state_tensors({"toy/other/weight/exp_avg": torch.zeros(2)})
    name = f"{THREE}/output.weight/exp_avg"
    with pytest.raises(DataError, match=r"toy/three\.ways"):
        toy.optimizer.load_state_tensors({**state, name: torch.zeros(2, WIDTH)})


def test_loaded_state_is_a_copy() -> None:
    first, second = toy_training(), toy_training()
    first.run(0, 3)
    second.optimizer.load_state_tensors(first.optimizer.state_tensors())
    saved = {name: value.clone() for name, value in second.optimizer.state_tensors().items()}
    first.run(3, 5)
    assert all(torch.equal(value, saved[name]) for name, value in second.optimizer.state_tensors().items())


def test_extra_parameters_share_rate_and_clip() -> None:
    extra = nn.Parameter(torch.tensor([1.0, 2.0]))
    model = toy_model((PAIRS,))
    settings = OptimizerSettings(learning_rate=0.1, weight_decay=0.5, warmup=0.0, clip_norm=1.0)
    optimizer = Optimizer(model, settings, {PAIRS: SequenceHeadSettings()}, 10, [extra])
    extra.grad = torch.tensor([3.0, 4.0])
    norm = optimizer.norm()
    assert float(norm) == pytest.approx(5.0)
    optimizer.step(0, ON, norm)
    torch.testing.assert_close(extra.grad, torch.tensor([0.6, 0.8]), rtol=1e-5, atol=0.0)
    torch.testing.assert_close(extra.detach(), torch.tensor([0.9, 1.9]), rtol=1e-5, atol=0.0)
