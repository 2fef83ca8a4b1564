"""The comparison of two runs as text for a terminal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtl.studies.columns import aligned

if TYPE_CHECKING:
    from mtl.studies.compare import Comparison, TaskComparison
    from mtl.studies.flips import Flip

_LONGEST_TEXT = 300


def comparison_text(comparison: "Comparison") -> str:
    """Settings, scores and tests, what these mean, and the flipped examples; A is the first run, B the second."""
    lines = [
        *(
            f"{name}  {run}  {stage}, seed {seed}" + ("" if status == "complete" else f", {status}")
            for name, run, stage, seed, status in zip(
                "AB", comparison.runs, comparison.stages, comparison.seeds, comparison.statuses, strict=True
            )
        ),
        "",
        *_settings(comparison),
        "",
        *_scores(comparison),
        "",
        *_notes(comparison),
    ]
    for task in comparison.tasks:
        lines += _flips(task)
    return "\n".join(lines) + "\n"


def _settings(comparison: "Comparison") -> list[str]:
    if not comparison.config_difference:
        return ["settings: no difference that could change a result"]
    return ["settings, A -> B:", *(f"  {line}" for line in comparison.config_difference)]


def _scores(comparison: "Comparison") -> list[str]:
    header = ("task", "score", "rows", "A", "B", "B - A", "p", "p (Holm)", "test")
    rows: list[tuple[str, ...]] = [
        (
            task.task + ("" if len(task.splits) != 1 or task.splits == ("dev",) else f" {task.splits[0]}"),
            " + ".join(task.score),
            f"{task.rows:,}",
            f"{task.first:.2f}",
            f"{task.second:.2f}",
            f"{task.difference:+.2f}",
            _p_value(task.test.p_value),
            _p_value(task.p_holm),
            task.test.test,
        )
        for task in comparison.tasks
    ]
    rows += [
        (name, "mean", "", f"{first:.2f}", f"{second:.2f}", f"{second - first:+.2f}", "", "", "none")
        for name, (first, second) in comparison.suites.items()
    ]
    return aligned(header, rows, left=(0, 1, 8))


def _p_value(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def _notes(comparison: "Comparison") -> list[str]:
    notes = [
        "One trained model a side. The tests ask whether the examples of the split could have made the difference;",
        "how much another seed would change is not tested. p (Holm) is corrected for the "
        f"{len(comparison.tasks)} task{'s' if len(comparison.tasks) > 1 else ''} above.",
    ]
    if comparison.partial:
        notes.append("Some rows are not the official release's: not comparable to published scores.")
    for name, only in (("A", comparison.only_first), ("B", comparison.only_second)):
        if only:
            notes.append(f"Scored in {name} only: {', '.join(only)}.")
    return notes


def _flips(task: "TaskComparison") -> Iterator[str]:
    """How many examples flipped in each split, each way, and those that were asked for."""
    classes = not {"pearson", "spearman"} & set(task.score)
    ways = ("wrong in A, right in B", "right in A, wrong in B") if classes else ("nearer in B", "further off in B")
    for split, flips in task.flips.items():
        for way, count, examples in zip(
            ways, (flips.gained_count, flips.lost_count), (flips.gained, flips.lost), strict=True
        ):
            yield ""
            shown = f", {len(examples)} shown" if len(examples) < count else ""
            yield f"{task.task} {split}: {count:,} {way}{shown}"
            for example in examples:
                yield from _example(example)
    yield from (f"(no texts: {reason})" for reason in task.missing_texts)


def _example(flip: "Flip") -> Iterator[str]:
    yield f"  row {flip.row}: label {_value(flip.label)}, A {_value(flip.first)}, B {_value(flip.second)}"
    yield from (f"    {_one_line(text)}" for text in flip.texts)


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"


def _one_line(text: str) -> str:
    """The text on one line: what would move the cursor or end a line is shown as an escape."""
    plain = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return plain if len(plain) <= _LONGEST_TEXT else plain[: _LONGEST_TEXT - 3] + "..."
