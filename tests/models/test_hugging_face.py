"""A head put into Hugging Face's own classifier: equal logits where that is possible, a refusal where it is not."""

from typing import Any

import pytest
import torch
from tiny_models import WIDTH, mixed_batch, tiny_model, toy_spec
from transformers import (
    AutoModelForSequenceClassification,
    CamembertConfig,
    CamembertModel,
    ErnieConfig,
    ErnieModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from mtl.config.encoder import SequenceHeadSettings
from mtl.errors import ConfigError
from mtl.models.heads import SequenceHead
from mtl.models.hugging_face import PLACES, classifier
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.random_streams import generator

SHAPE: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 48,
}
OTHERS = {
    "camembert": lambda: CamembertModel(CamembertConfig(**SHAPE, pad_token_id=0), add_pooling_layer=False),
    "ernie": lambda: ErnieModel(ErnieConfig(**SHAPE), add_pooling_layer=False),
    "xlm-roberta": lambda: XLMRobertaModel(XLMRobertaConfig(**SHAPE, pad_token_id=0), add_pooling_layer=False),
}
TASK = "toy/pairs"


def encoder_model(family: str) -> Any:
    return OTHERS[family]() if family in OTHERS else tiny_model(family)


def make_head(outputs: int = 2, pooling: str = "first_dense") -> SequenceHead:
    head = SequenceHead(
        toy_spec(TASK, outputs), WIDTH, SequenceHeadSettings.model_validate({"pooling": pooling, "dropout": 0.25})
    )
    head.initialise(1, None)
    # Biases start at zero, which would hide that one was forgotten.
    with torch.no_grad():
        for number, parameter in enumerate(head.parameters()):
            draws = generator(number, "noise").standard_normal(parameter.shape)
            parameter.add_(torch.from_numpy(draws).to(parameter.dtype))
    return head


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("family", sorted(PLACES))
def test_logits_are_equal(family: str, outputs: int) -> None:
    head, batch = make_head(outputs), mixed_batch()
    model = MultitaskModel(wrap_model(encoder_model(family), "packed"), {TASK: head}).eval()
    exported = classifier(model.encoder.model, head, toy_spec(TASK, outputs))
    chosen = batch.layout.slices[TASK]
    offsets = batch.sequence_offsets.tolist()
    with torch.no_grad():
        hidden = model.encoder(batch)
        expected = head(hidden, batch, None)
        rows = [slice(offsets[place], offsets[place + 1]) for place in range(chosen.start, chosen.stop)]
        found = torch.cat([exported(**inputs(exported, batch, row)).logits for row in rows])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert isinstance(exported, type(AutoModelForSequenceClassification.from_config(exported.config)))
    assert not exported.training


def inputs(model: Any, batch: Any, row: slice) -> dict[str, torch.Tensor]:
    found = {"input_ids": batch.token_ids[row][None], "attention_mask": torch.ones_like(batch.token_ids[row])[None]}
    if model.config.type_vocab_size > 1:
        found["token_type_ids"] = batch.type_ids[row][None]
    return found


def test_the_config_says_the_labels_in_order_and_the_dropout() -> None:
    config = classifier(tiny_model("bert"), make_head(3), toy_spec(TASK, 3)).config
    assert config.id2label == {0: "class 0", 1: "class 1", 2: "class 2"}
    assert config.label2id == {"class 0": 0, "class 1": 1, "class 2": 2}
    assert (config.num_labels, config.problem_type) == (3, "single_label_classification")
    assert config.classifier_dropout == 0.25
    assert classifier(tiny_model("albert"), make_head(), toy_spec(TASK, 2)).config.classifier_dropout_prob == 0.25


def test_a_regression_has_one_output_called_score() -> None:
    config = classifier(tiny_model("roberta"), make_head(1), toy_spec(TASK, 1)).config
    assert (config.num_labels, config.problem_type, config.id2label) == (1, "regression", {0: "score"})


def test_the_encoder_keeps_its_own_config_and_the_global_generator_its_state() -> None:
    encoder, head = tiny_model("bert"), make_head(3)
    state = torch.get_rng_state()
    classifier(encoder, head, toy_spec(TASK, 3))
    assert encoder.config.num_labels == 2
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("family", ["electra", "distilbert", "modernbert", "deberta"])
def test_an_architecture_with_another_head_is_refused_naming_those_that_go(family: str) -> None:
    with pytest.raises(ConfigError, match=r"another head .* albert, bert, .* roberta"):
        classifier(tiny_model(family), make_head(), toy_spec(TASK, 2))


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_another_pooling_is_refused(pooling: str) -> None:
    with pytest.raises(ConfigError, match=r"head\.pooling=first_dense"):
        classifier(tiny_model("bert"), make_head(2, pooling), toy_spec(TASK, 2))
