from pathlib import Path

import pytest

from mtl.config import locations
from mtl.config.run import RunConfig
from mtl.errors import ConfigError


def lay_out(root: Path, *recipe_folders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the package lies under `root`, with recipes in the folders named."""
    module = root / "mtl" / "config" / "locations.py"
    module.parent.mkdir(parents=True)
    for folder in recipe_folders:
        (root / folder).mkdir(parents=True)
        (root / folder / "base.yaml").write_text("seed: 1\n", encoding="utf-8")
    monkeypatch.setattr(locations, "__file__", str(module))


def test_a_checkout_has_its_recipes_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path, "configs", monkeypatch=monkeypatch)
    assert locations.configs_directory() == tmp_path.resolve() / "configs"


def test_an_installed_package_has_them_inside_whatever_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, "mtl/recipes", "configs", monkeypatch=monkeypatch)
    assert locations.configs_directory() == tmp_path.resolve() / "mtl" / "recipes"


def test_missing_recipes_are_an_error_that_names_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path, monkeypatch=monkeypatch)
    (tmp_path / "configs").mkdir()
    with pytest.raises(ConfigError) as caught:
        locations.configs_directory()
    assert str(tmp_path.resolve() / "mtl" / "recipes") in str(caught.value)
    assert str(tmp_path.resolve() / "configs") in str(caught.value)
    assert caught.value.exit_code == 2


def test_this_package_has_its_recipes() -> None:
    assert (locations.configs_directory() / "base.yaml").is_file()


@pytest.mark.parametrize(
    ("setting", "variable", "expected"),
    [("here", "there", Path("here")), (None, "there", Path("there")), (None, "", None), (None, None, None)],
)
def test_the_data_root_is_the_setting_then_the_variable(
    setting: str | None, variable: str | None, expected: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MTL_DATA_DIR", raising=False)
    if variable is not None:
        monkeypatch.setenv("MTL_DATA_DIR", variable)
    config = RunConfig.model_validate({"tasks": ["mini"], "data": {"root": setting}})
    assert locations.data_root(config) == expected


def test_the_cache_is_the_setting_then_the_variable_then_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig.model_validate({"tasks": ["mini"]})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MTL_CACHE_DIR")
    assert locations.cache_directory(config) == tmp_path / ".cache" / "mtl"
    monkeypatch.setenv("MTL_CACHE_DIR", "~/kept")
    assert locations.cache_directory(config) == tmp_path / "kept"
    chosen = RunConfig.model_validate({"tasks": ["mini"], "data": {"cache": "mine"}})
    assert locations.cache_directory(chosen) == Path("mine")
