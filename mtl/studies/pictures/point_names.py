"""Names beside points, where there is room for them."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

# Points right (or left) of the marker and above (or below) it, the usual place first.
_PLACES = tuple(product((5, -5), (4, -4)))


def name_points(axes: "Axes", points: Sequence[tuple[float, float, str, str]]) -> bool:
    """Write each (x, y, name, colour) beside its point, over no line, marker or other name.

    False, and nothing is written, where one finds no place: a legend has to tell then. All else is drawn before.
    """
    from matplotlib.transforms import Bbox

    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    taken: list[Bbox] = [line.get_window_extent().padded(1.5 * figure.dpi / 72) for line in axes.lines]
    inside = Bbox.from_extents(axes.bbox.x0, axes.bbox.y0, figure.bbox.x1, axes.bbox.y1)
    written = []
    for x, y, name, colour in points:
        text = axes.annotate(name, (x, y), xytext=(0, 0), textcoords="offset points", color=colour)
        written.append(text)
        for right, up in _PLACES:
            text.set_position((right, up))
            text.set_horizontalalignment("left" if right > 0 else "right")
            text.set_verticalalignment("bottom" if up > 0 else "top")
            box = text.get_window_extent()
            if _lies_in(box, inside) and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            for each in written:
                each.remove()
            return False
    return True


def _lies_in(box: "Bbox", frame: "Bbox") -> bool:
    return bool(box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1)
