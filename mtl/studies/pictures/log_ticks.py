"""Numbers on a logarithmic axis that a reader takes in without exponents in each."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW_DECADES = 30.0
_PLAIN = 4
_SAME = 1 + 1e-6
_ONE_TWO_FIVE = [step * 10.0**power for power in range(-_PLAIN, _PLAIN + 1) for step in (1, 2, 5)]


def number_log_axis(axes: "Axes", label: str, remark: str = "") -> None:
    """Scale the x axis of a finished panel logarithmically and number it.

    Where it spans little, at a few round numbers in a common power of ten, which the label then names; else at powers
    of ten. Numbers from 0.0001 to 10,000 are written out. ``remark`` is a second line of the label.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    first, last = axes.dataLim.intervalx
    if last <= first * _SAME:
        # Means that differ in their last digit alone would leave no width to the axis.
        axes.set_xlim(first / 1.5, first * 1.5)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_minor_formatter(NullFormatter())
    if high / low < _FEW_DECADES:
        power = math.floor(math.log10(low))
        power = 0 if abs(power) <= _PLAIN else power
        scale = 10.0**power
        ticks = [tick for tick in _ONE_TWO_FIVE if low <= tick * scale <= high]
        if len(ticks) < 3:
            ticks = [float(tick) for tick in MaxNLocator(3).tick_values(low / scale, high / scale)]
            ticks = [tick for tick in ticks if low <= tick * scale <= high]
        axes.xaxis.set_major_locator(FixedLocator([tick * scale for tick in ticks]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
        axes.xaxis.set_minor_locator(FixedLocator([]))
        label += "" if power == 0 else f" ($10^{{{power}}}$)"
    else:
        axes.xaxis.set_major_locator(LogLocator(numticks=5))
        if low > 10.0**-_PLAIN and high < 10.0**_PLAIN:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel(f"{label}\n{remark}" if remark else label)
