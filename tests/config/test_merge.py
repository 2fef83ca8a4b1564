"""How layers of settings merge."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.config.kinds import OneOf
from mtl.config.merge import FIELDS_WITH_KINDS, merge
from mtl.config.run import RunConfig
from mtl.config.sampling import SAMPLINGS

# No kinds and no alternatives: then merging is plain.
_plain_keys = st.sampled_from("abcd")
_leaves = st.one_of(st.none(), st.text("xyz", max_size=2), st.lists(st.text("xyz", max_size=1), max_size=2))
_values = st.recursive(_leaves, lambda inner: st.dictionaries(_plain_keys, inner, max_size=3), max_leaves=8)
_documents = st.dictionaries(_plain_keys, _values, max_size=3)
# The same keys always hold the same sort of thing, as in configs that validate.
_shaped = st.fixed_dictionaries({}, optional={"a": _leaves, "b": st.dictionaries(_plain_keys, _leaves, max_size=3)})


@pytest.mark.parametrize(
    ("lower", "upper", "merged"),
    [
        ({"a": {"x": "1", "y": "2"}}, {"a": {"y": "3"}}, {"a": {"x": "1", "y": "3"}}),
        ({"a": ["1", "2"]}, {"a": ["3"]}, {"a": ["3"]}),
        ({"a": {"x": "1"}}, {"a": None}, {"a": None}),
        ({"a": None}, {"a": {"x": "1"}}, {"a": {"x": "1"}}),
        ({"sampling": {"kind": "power", "exponent": "1"}}, {"sampling": "uniform"}, {"sampling": {"kind": "uniform"}}),
        (
            {"sampling": {"kind": "power", "cap": "1"}},
            {"sampling": {"kind": "temperature", "temperature": "2"}},
            {"sampling": {"kind": "temperature", "temperature": "2"}},
        ),
        (
            {"sampling": {"kind": "power", "cap": "1"}},
            {"sampling": "power"},
            {"sampling": {"kind": "power", "cap": "1"}},
        ),
        ({"sampling": "power"}, {"sampling": {"cap": "1"}}, {"sampling": {"kind": "power", "cap": "1"}}),
        ({"max_train_rows": "5"}, {"max_train_rows": {"a/b": "1"}}, {"max_train_rows": {"a/b": "1"}}),
        (
            {"sampling": {"kind": "power", "schedule": {"kind": "linear", "end": "0"}}},
            {"sampling": {"schedule": "pals"}},
            {"sampling": {"kind": "power", "schedule": {"kind": "pals"}}},
        ),
    ],
)
def test_merged(lower: dict[str, Any], upper: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merge(lower, upper) == merged


def test_setting_one_alternative_drops_the_other() -> None:
    lower = {"training": {"epochs": "3", "rows_per_update": "32"}}
    assert merge(lower, {"training": {"updates": "4"}}) == {"training": {"rows_per_update": "32", "updates": "4"}}
    assert merge(lower, {"training": {"updates": None}})["training"] == {**lower["training"], "updates": None}
    both = {"epochs": "1", "updates": "4"}
    assert merge(lower, {"training": both})["training"] == {"rows_per_update": "32", **both}


def test_another_encoder_does_not_inherit_what_an_earlier_one_was_trained_on() -> None:
    lower = {"encoder": {"kind": "pretrained", "path": "a", "known_training_data": ["MNLI"], "dropout": "0"}}
    assert merge(lower, {"encoder": {"path": "b"}}) == {"encoder": {"kind": "pretrained", "path": "b", "dropout": "0"}}
    assert merge(lower, {"encoder": {"path": "a"}}) == lower
    assert merge(lower, {"encoder": {"dropout": "1"}})["encoder"]["known_training_data"] == ["MNLI"]
    upper = {"encoder": {"path": "b", "known_training_data": ["QQP"]}}
    assert merge(lower, upper)["encoder"]["known_training_data"] == ["QQP"]


def test_the_fields_with_kinds_are_those_of_the_settings_types() -> None:
    owners = [RunConfig, *SAMPLINGS.values()]
    marked = {
        name
        for owner in owners
        for name, field in owner.model_fields.items()
        if any(isinstance(mark, OneOf) for mark in field.metadata)
    }
    assert marked == FIELDS_WITH_KINDS


@given(_documents)
def test_nothing_over_and_under_a_document_leaves_it(document: dict[str, Any]) -> None:
    assert merge(document, {}) == merge({}, document) == merge(document, document) == document


@given(_documents, _documents)
def test_the_upper_layer_wins_and_neither_is_changed(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    before = copy.deepcopy((lower, upper))
    merged = merge(lower, upper)
    assert (lower, upper) == before
    assert merge(merged, upper) == merged
    assert set(merged) == set(lower) | set(upper)
    for value in merged.values():
        if isinstance(value, list):
            value.append("changed")
    assert (lower, upper) == before


@given(_shaped, _shaped, _shaped)
def test_grouping_does_not_matter_where_no_mapping_is_replaced(a: Any, b: Any, c: Any) -> None:
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
