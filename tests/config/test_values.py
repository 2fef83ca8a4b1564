"""How ``key=value`` is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.config.values import nested, parse_assignment
from mtl.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("seed=1", ("seed",), "1"),
        ("a.b=c=d", ("a", "b"), "c=d"),
        ("a.b = 3e-4 ", ("a", "b"), "3e-4"),
        ("a.b=null", ("a", "b"), None),
        ("a='null'", ("a",), "null"),
        ('a=""', ("a",), ""),
        ("data.root=~/glue", ("data", "root"), "~/glue"),
        ("tasks=[glue,-glue/wnli]", ("tasks",), ["glue", "-glue/wnli"]),
        ("a={x/y: [1, null]}", ("a",), {"x/y": ["1", None]}),
        ("task_overrides.glue/rte.training.updates=5", ("task_overrides", "glue/rte", "training", "updates"), "5"),
        ('task_overrides."my.suite/a.b".head.dropout=0', ("task_overrides", "my.suite/a.b", "head", "dropout"), "0"),
    ],
)
def test_assignments(text: str, path: tuple[str, ...], value: object) -> None:
    assert parse_assignment(text) == (path, value)


@pytest.mark.parametrize(
    "text",
    [
        "glue",
        "=1",
        ".a=1",
        "a.=1",
        "a..b=1",
        'a."b=1',
        'a."".b=1',
        'a."b"c=1',
        "a=",
        "a=[1",
        "a={x:1}",
        "a=[*x]",
        "a={x: 1, x: 2}",
    ],
)
def test_malformed_assignments_are_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_assignment(text)
    assert text in str(caught.value)


def test_nested() -> None:
    assert nested(("a", "b", "c"), None) == {"a": {"b": {"c": None}}}
    assert nested(("a",), "x") == {"a": "x"}


@given(st.lists(st.text("abc/._-", min_size=1), min_size=1, max_size=4), st.text("xyz=.,:/ ", min_size=1))
def test_any_path_can_be_written_with_quotes(parts: list[str], value: str) -> None:
    text = ".".join(f'"{part}"' for part in parts) + f"=v{value}"
    assert parse_assignment(text) == (tuple(parts), f"v{value}".strip())
