"""The best of a grid at the end of a list is said to be there."""

from itertools import product

import pytest

from mtl.studies.grid_edges import at_edges

GRID = {"sampling.temperature": ("1", "2", "5"), "sampling.kind": ("a", "b", "c"), "optimizer.learning_rate": (3, 1, 2)}


@pytest.mark.parametrize(("number", "values"), list(enumerate(product(*GRID.values()))))
def test_each_combination_names_its_own_ends(number: int, values: tuple[str, str, int]) -> None:
    lines = at_edges(GRID, number)
    assert [line.split(",")[0] for line in lines] == [
        f"its {key}"
        for key, value, inside in (
            ("sampling.temperature", values[0], "2"),
            ("optimizer.learning_rate", values[2], 2),
        )
        if value != inside
    ]


def test_the_side_that_was_not_tried_is_named() -> None:
    assert at_edges({"a.b": (1, "2e0", 3)}, 0) == [
        "its a.b, 1, is the end of the list 1, 2e0, 3: no lower one was tried"
    ]
    assert at_edges({"a.b": (3, 2, 1)}, 0) == ["its a.b, 3, is the end of the list 3, 2, 1: no higher one was tried"]


@pytest.mark.parametrize("values", [(1, 2), (1, 1, 2), (None, 1, 2), ("x", "y", "z")])
def test_a_list_without_an_inside_has_no_ends(values: tuple[object, ...]) -> None:
    assert at_edges({"a.b": values}, 0) == []
