"""What was added to a study after runs of it had been scored, so that tables can say so.

Seeds that are added because a result was not yet clear make such a test find a difference too often: with one more look
the nominal 5% are more than 5% (Armitage, McPherson and Rowe 1969, on repeated significance tests).
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mtl.atomic import write_text_atomically
from mtl.errors import DataError


class Addition(BaseModel):
    """Seeds and arms that a study got when so many of its runs were complete."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seeds: tuple[int, ...]
    arms: tuple[str, ...]
    complete: int

    @property
    def note(self) -> str:
        """What a reader of its tables has to know."""
        what = " and ".join(
            f"{name} {', '.join(map(str, found))}"
            for name, found in (("seed", self.seeds), ("arm", self.arms))
            if found
        )
        return (
            f"added when {self.complete} runs were complete: {what}; if scores had been looked at, p and intervals "
            "promise too much"
        )


_ADDITIONS = TypeAdapter(tuple[Addition, ...])


def read_additions(path: Path) -> tuple[Addition, ...]:
    """All of a study, the earliest first; DataError where the file is damaged."""
    if not path.is_file():
        return ()
    try:
        return _ADDITIONS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path} is damaged: copy it anew; without it tables do not tell what was added") from error


def note_addition(path: Path, seeds: Sequence[int], arms: Sequence[str], complete: int) -> None:
    """Keep that these were added, unless nothing was, or nothing had been scored yet."""
    earlier = read_additions(path)
    addition = Addition(seeds=tuple(seeds), arms=tuple(arms), complete=complete)
    # A start that died before the study's own file was written adds the same again.
    told = any((each.seeds, each.arms) == (addition.seeds, addition.arms) for each in earlier)
    if complete and (seeds or arms) and not told:
        text = _ADDITIONS.dump_json((*earlier, addition), indent=1).decode("utf-8")
        write_text_atomically(path, text + "\n")
