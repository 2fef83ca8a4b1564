"""Settings that were asked for and are lost again: said on a command line, refused in a study."""

import logging
from pathlib import Path
from typing import Any

import pytest

from mtl.config.load import dropped_overrides, read_document
from mtl.config.merge import FIELDS_WITH_KINDS
from mtl.config.overrides import KINDS


def test_kinds_are_known_of_every_field_that_has_them() -> None:
    assert set(KINDS) == FIELDS_WITH_KINDS


@pytest.mark.parametrize(
    ("overrides", "lost"),
    [
        (["sampling.sizes=official", "sampling=uniform"], ["sampling.sizes"]),
        (["sampling.cap=5", "sampling.sizes=official", "sampling=proportional"], ["sampling.cap", "sampling.sizes"]),
        ([{"sampling": {"sizes": "official"}}, {"sampling": {"kind": "power"}}], ["sampling.sizes"]),
        (["encoder.dropout=0", "encoder=scratch"], ["encoder.dropout"]),
        (["sampling.sizes=official", "joint.sampling=uniform"], ["sampling.sizes"]),
        (["joint.sampling=uniform", "sampling.sizes=official"], ["sampling.sizes"]),
        (["sampling=linear", "sampling.schedule.end=1"], []),
        # Set again, or with the kind.
        (["sampling.sizes=official", "sampling={kind: uniform, sizes: actual}"], []),
        (["sampling=uniform", "sampling.sizes=official"], []),
        # The kind that it has already.
        (["sampling.cap=5", "sampling=temperature"], []),
        # Nothing that the new kind would know.
        (["sampling.temperature=5", "sampling=uniform"], []),
        # One of two ways to say the same, and a value that is said again.
        (["training.epochs=3", "training.updates=4"], []),
        (["sampling.temperature=2", "sampling.temperature=5"], []),
    ],
)
def test_what_a_kind_that_is_named_later_drops(overrides: list[Any], lost: list[str]) -> None:
    lines = dropped_overrides("glue", overrides)
    assert sorted(line.split()[0] for line in lines) == lost


def test_a_command_line_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="mtl"):
        document = read_document("glue", ["sampling.sizes=official", "sampling=uniform"])
    assert document["sampling"] == {"kind": "uniform"}
    assert "sampling.sizes is dropped by the kind that is named after it" in caplog.text
    caplog.clear()
    read_document("glue", ["sampling=uniform", "sampling.sizes=official"])
    assert not caplog.text


def test_a_block_that_is_unset_begins_anew() -> None:
    overrides = ["joint=null", "joint.training.updates=5"]
    assert read_document("glue", overrides)["joint"] == {"training": {"updates": "5"}}
    documents = [{"joint": None}, {"joint": {"training": {"updates": "5"}}}]
    assert read_document("glue", documents)["joint"] == {"training": {"updates": "5"}}


def test_a_kind_in_a_recipes_block_is_that_of_the_later_layer(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("joint: {sampling: {temperature: 5}}\n")
    assert read_document(["glue", recipe], ["joint.sampling=uniform"])["joint"]["sampling"] == {"kind": "uniform"}


@pytest.mark.parametrize(
    ("overrides", "known"),
    [
        (["encoder.path=b", "encoder.known_training_data=[A]"], ["A"]),
        (["encoder.known_training_data=[A]", "encoder.path=b"], None),
        (["encoder.path=b"], None),
        (["encoder=scratch"], None),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"dropout": "0"}}], ["A"]),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"path": "b"}}], None),
        ([{"encoder": {"known_training_data": ["A"]}}, {"encoder": {"kind": "scratch"}}], None),
    ],
)
def test_known_training_data_are_those_of_the_model_they_were_said_of(overrides: list[Any], known: Any) -> None:
    assert read_document("glue_minilm", overrides)["encoder"].get("known_training_data") == known
