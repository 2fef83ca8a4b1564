"""Task files in a list of tasks: found beside the config that names them, and kept whole in the config."""

from pathlib import Path

import pytest

from mtl.config.hashes import difference
from mtl.config.load import load_config
from mtl.errors import ConfigError

REVIEWS = "{name: mine/reviews, files: {train: a.csv, dev: b.csv}, texts: [review], labels: [no, yes]}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config and a task file, beside the working directory, which has neither."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reviews.yaml").write_text(REVIEWS)
    (tmp_path / "own" / "config.yaml").write_text("tasks: [mini/entail2, ./reviews.yaml]\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "own"


def test_a_path_is_relative_to_the_config_that_names_it(folder: Path) -> None:
    first, definition = load_config("../own/config.yaml").tasks
    assert first == "mini/entail2"
    assert isinstance(definition, dict)
    assert definition["name"] == "mine/reviews"
    assert definition["labels"] == ["no", "yes"]
    assert Path(definition["defined_in"]).resolve() == (folder / "reviews.yaml").resolve()


def test_on_the_command_line_it_is_relative_to_the_working_directory(folder: Path) -> None:
    beside = load_config("../own/config.yaml")
    given = load_config([], ["tasks=[mini/entail2,../own/reviews.yaml]"])
    assert difference(beside, given) == []
    with pytest.raises(ConfigError, match=r"here/reviews\.yaml: cannot be read"):
        load_config([], ["tasks=[./reviews.yaml]"])


def test_a_file_that_a_later_layer_replaces_is_not_read(folder: Path) -> None:
    (folder / "reviews.yaml").unlink()
    assert load_config("../own/config.yaml", ["tasks=[mini]"]).tasks == ("mini",)


def test_a_definition_may_stand_in_the_config_itself(folder: Path) -> None:
    (folder / "whole.yaml").write_text(f"tasks:\n- {REVIEWS}\n")
    (definition,) = load_config(folder / "whole.yaml").tasks
    assert isinstance(definition, dict)
    assert definition["defined_in"] == str(folder / "whole.yaml")


def test_what_was_resolved_stays_when_the_file_changes(folder: Path) -> None:
    import yaml

    config = load_config(folder / "config.yaml")
    (folder / "run").mkdir()
    (folder / "run" / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    (folder / "reviews.yaml").write_text(REVIEWS.replace("[no, yes]", "[yes, no]"))
    stored = load_config(folder / "run" / "config.yaml")
    assert stored == config
    assert difference(stored, load_config(folder / "config.yaml")) == [
        'definitions.mine/reviews.labels: ["no", "yes"] -> ["yes", "no"]'
    ]


@pytest.mark.parametrize("entry", ["null", "[a]"])
def test_an_entry_is_a_name_or_a_definition(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"  tasks\.0: must be a valid string"):
        load_config([], [f"tasks=[{entry}]"])
