"""How command lines and studies change what recipes say."""

from pathlib import Path
from typing import Any

import pytest

from mtl.config.load import load_config, read_document
from mtl.config.overrides import lay_over
from mtl.errors import ConfigError


@pytest.mark.parametrize(
    ("lower", "layers", "merged"),
    [
        ({"a": {"x": "1", "y": "2"}}, [{"a": None}, {"a": {"x": "3"}}], {"a": {"x": "3"}}),
        (
            {"a": {"b": {"x": "1"}, "y": "2"}},
            [{"a": {"b": None}}, {"a": {"b": {"z": "3"}}}],
            {"a": {"b": {"z": "3"}, "y": "2"}},
        ),
        ({"a": {"x": "1"}}, [{"a": "5"}, {"a": {"y": "2"}}], {"a": {"y": "2"}}),
        ({"a": {"x": "1"}}, [{"a": {"y": "2"}}, {"a": None}], {"a": None}),
        (
            {"sampling": {"kind": "power", "cap": "1", "sizes": "official"}},
            [{"sampling": "uniform"}, {"sampling": {"kind": "power"}}],
            {"sampling": {"kind": "power", "cap": "1", "sizes": "official"}},
        ),
        (
            {"sampling": {"kind": "power", "sizes": "official"}},
            [{"sampling": None}, {"sampling": "uniform"}],
            {"sampling": {"kind": "uniform"}},
        ),
    ],
)
def test_laid_over(lower: dict[str, Any], layers: list[dict[str, Any]], merged: dict[str, Any]) -> None:
    assert lay_over(lower, layers) == merged


def test_a_block_that_is_unset_begins_anew() -> None:
    overrides = ["joint=null", "joint.training.updates=5"]
    assert read_document("glue", overrides)["joint"] == {"training": {"updates": "5"}}
    documents = [{"joint": None}, {"joint": {"training": {"updates": "5"}}}]
    assert read_document("glue", documents)["joint"] == {"training": {"updates": "5"}}


def test_what_a_recipe_sets_in_a_block_is_of_the_kind_that_holds_for_all(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "joint: {sampling: {temperature: 5}}\ntask_overrides: {glue/rte: {weighting: {weights: {a/b: 2}}}}\n"
    )
    block = read_document(["glue", recipe], ["joint.sampling=uniform"])["joint"]
    assert block["sampling"] == {"kind": "uniform"}
    assert load_config(["glue", recipe], ["joint.sampling=temperature"]).joint["sampling"]["temperature"] == "5"
    again = tmp_path / "again.yaml"
    again.write_text("joint: {sampling: uniform}\ntask_overrides: {glue/rte: {weighting: muppet}}\n")
    document = read_document(["glue", recipe, again])
    assert document["joint"]["sampling"] == {"kind": "uniform"}
    assert document["task_overrides"]["glue/rte"]["weighting"] == {"kind": "muppet"}
    with pytest.raises(ConfigError, match=r"joint\.sampling\.temperature"):
        load_config("glue", ["joint.sampling.temperature=5", "joint.sampling=uniform"])


@pytest.mark.parametrize(
    ("overrides", "known"),
    [
        (["encoder.path=b", "encoder.known_training_data=[A]"], ["A"]),
        (["encoder.known_training_data=[A]", "encoder.path=b"], ["A"]),
        (["encoder.known_training_data=[A]", "encoder=scratch"], ["A"]),
        (["encoder.path=b", "encoder.known_training_data=[A]", "encoder.path=c"], None),
        (["encoder.path=b"], None),
        (["encoder=scratch"], None),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"dropout": "0"}}], ["A"]),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"kind": "pretrained"}}], ["A"]),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"path": "b"}}], None),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"kind": "scratch"}}], None),
        ([{"encoder": {"known_training_data": ["A"], "path": "b"}}, {"encoder": {"path": "b"}}], ["A"]),
    ],
)
def test_known_training_data_are_those_of_the_model_they_were_said_of(overrides: list[Any], known: Any) -> None:
    assert read_document("glue_minilm", overrides)["encoder"].get("known_training_data") == known
