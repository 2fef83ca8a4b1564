"""The probe lets right encoders pass and refuses those that leak, miss our attention or draw random numbers."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tiny_models import FAMILIES, NATIVE, PACKABLE, VOCABULARY, WIDTH, tiny_model
from torch import Tensor, nn

from mtl.errors import ConfigError
from mtl.models.load import wrap_model
from mtl.models.probe import probe_encoder, random_batch


class OwnAttention(nn.Module):
    """Attends in its own way, whatever attention the model was told to use."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, None]:
        return torch.softmax(hidden @ hidden.transpose(1, 2), dim=-1) @ self.values(hidden), None


class After(nn.Module):
    """Applies a function to what a module returns, in training mode or always."""

    def __init__(self, inner: nn.Module, change: Any, *, always: bool) -> None:
        super().__init__()
        self.inner, self.change, self.always = inner, change, always

    def forward(self, *arguments: Any, **named: Any) -> Tensor:
        output: Tensor = self.inner(*arguments, **named)
        changed: Tensor = self.change(output) if self.always or self.training else output
        return changed


def altered_bert(change: Any, *, always: bool) -> Any:
    model = tiny_model("bert")
    model.embeddings = After(model.embeddings, change, always=always)
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_right_encoders_pass(family: str) -> None:
    ways = ["padded", *(["packed"] if family in PACKABLE else []), *(["native"] if family in NATIVE else [])]
    for way in ways:
        encoder = wrap_model(tiny_model(family), way)
        probe_encoder(encoder, VOCABULARY)
        # Nothing is left of the probe: no gradient, and the weights as they were.
        before = dict(tiny_model(family).named_parameters())
        for name, parameter in encoder.model.named_parameters():
            assert torch.equal(parameter, before[name]), (way, name)
            assert parameter.grad is None


def test_attention_of_its_own_is_refused() -> None:
    model = tiny_model("bert")
    model.encoder.layer[1].attention.self = OwnAttention()
    with pytest.raises(ConfigError, match=r"BertModel called the packed attention 1 times for 2 layers.*=padded"):
        probe_encoder(wrap_model(model, "packed"), VOCABULARY)


def test_mixing_tokens_outside_attention_is_refused() -> None:
    model = altered_bert(lambda hidden: hidden + hidden.roll(1, dims=1), always=True)
    with pytest.raises(ConfigError, match=r"without padding differs from BertModel padded.*encoder\.batching=padded"):
        probe_encoder(wrap_model(model, "packed"), VOCABULARY)


@pytest.mark.parametrize("batching", ["packed", "padded"])
@pytest.mark.parametrize("change", [F.dropout, nn.AlphaDropout(0.1), lambda hidden: hidden + torch.rand(())])
def test_random_numbers_outside_dropout_modules_are_refused(batching: str, change: Any) -> None:
    model = altered_bert(change, always=False)
    with pytest.raises(ConfigError, match="draws random numbers outside"):
        probe_encoder(wrap_model(model, batching), VOCABULARY)


@pytest.mark.parametrize("batching", ["packed", "padded"])
def test_an_attention_without_our_dropout_is_refused_by_either_way(batching: str) -> None:
    model = tiny_model("bert")
    model.encoder.layer[0].attention.self = After(
        model.encoder.layer[0].attention.self, lambda pair: (F.dropout(pair[0]), pair[1]), always=False
    )
    with pytest.raises(ConfigError, match="draws random numbers"):
        probe_encoder(wrap_model(model, batching), VOCABULARY)


def test_a_model_whose_attention_cannot_be_replaced_is_not_packed() -> None:
    with pytest.raises(ConfigError, match=r"DebertaV2Model .*encoder\.batching=padded"):
        wrap_model(tiny_model("deberta"), "packed")


def test_probing_changes_no_weight_and_no_generator() -> None:
    encoder = wrap_model(tiny_model("modernbert"), "packed")
    before, state = copy.deepcopy(encoder.state_dict()), torch.get_rng_state()
    probe_encoder(encoder, VOCABULARY)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())


def test_the_probes_batch_avoids_special_tokens() -> None:
    batch = random_batch((11, 5, 23), VOCABULARY)
    assert batch.sequence_offsets.tolist() == [0, 11, 16, 39]
    assert int(batch.token_ids.min()) >= VOCABULARY // 2
    assert int(batch.token_ids.max()) < VOCABULARY
    assert batch.targets == {}


def test_attention_outside_the_encoder_is_an_error() -> None:
    encoder = wrap_model(tiny_model("bert"), "packed").eval()
    with pytest.raises(RuntimeError, match="outside the encoder"):
        encoder.model(input_ids=torch.ones(1, 4, dtype=torch.long))
