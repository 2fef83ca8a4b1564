"""Names short and narrow enough for a picture."""

import re
from collections.abc import Sequence

_MAY_BREAK = re.compile(r"(?<=[^A-Za-z0-9,.()])(?=[^ ])")
INCHES_PER_LETTER = 0.07
"""Of the 8-point letters of pictures: a little more than the mean, so that a line that should fit does."""


def task_labels(tasks: Sequence[str], letters: int = 14) -> dict[str, str]:
    """Each task as it is called in a picture: without its suite where all are of one, in lines of ``letters``."""
    short = len({task.split("/")[0] for task in tasks}) == 1
    return {task: wrapped(task.split("/")[1] if short and "/" in task else task, letters) for task in tasks}


def wrapped(name: str, letters: int) -> str:
    """``name`` in lines of at most ``letters``, broken after a sign where there is one, else anywhere."""
    lines = [""]
    for part in _MAY_BREAK.split(name):
        if lines[-1] and len(lines[-1]) + len(part) > letters:
            lines.append("")
        lines[-1] += part
        while len(lines[-1]) > letters:
            lines[-1:] = [lines[-1][:letters], lines[-1][letters:]]
    return "\n".join(lines)


def short_number(value: float) -> str:
    """A number of an axis, ten thousand and more in thousands: ``250``, ``25k``."""
    return f"{value / 1000:,g}k" if abs(value) >= 10_000 else f"{value:g}"


def letters_in(inches: float) -> int:
    """How many letters fit beside each other."""
    return max(4, int(inches / INCHES_PER_LETTER))


def widest(labels: Sequence[str]) -> float:
    """Inches that the longest line of the labels takes, about."""
    return INCHES_PER_LETTER * max(len(line) for label in labels for line in label.split("\n"))
