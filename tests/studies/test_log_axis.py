"""Axes of pictures that are scaled logarithmically."""

import warnings

import pytest
from matplotlib.figure import Figure

from mtl.studies.pictures.log_ticks import number_log_axis


@pytest.mark.parametrize("values", [(0.2, 0.2), (0.2, 0.20000000000000004), (3e11, 3e11 + 1)])
def test_values_that_are_the_same_but_for_rounding_get_an_axis_with_a_width(values: tuple[float, float]) -> None:
    axes = Figure().add_subplot()
    axes.margins(x=0.12)
    for value in values:
        axes.plot(value, 1.0, "o")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        number_log_axis(axes, "epochs")
        low, high = axes.get_xlim()
    assert low < 0.9 * values[0]
    assert high > 1.1 * values[1]
