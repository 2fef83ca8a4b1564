"""What a sentence of the mini world means, and how two meanings relate.

A clause is a *box* of scenes: those whose agent, action, patient, and where they are mentioned place and quality, lie
within the concepts it names. Boxes compare slot by slot, because each slot of a scene varies freely:

* ``within``: every slot that the wide clause mentions is mentioned at least as narrowly by the narrow one;
* ``apart``: some slot that both mention has disjoint concepts;
* ``open``: neither, so that of the scenes of the first some are of the second and some are not.
"""

from dataclasses import dataclass
from typing import Literal

from mtl.tasks.mini_world import ACTIONS, DIMENSION, KINDS, PLACES

Relation = Literal["within", "apart", "open"]


@dataclass(frozen=True, slots=True)
class Clause:
    """A box of scenes: concepts of agent, action and patient, and of the place and a quality where these are given."""

    agent: str
    action: str
    patient: str
    place: str | None = None
    quality: str | None = None


def is_within(narrow: Clause, wide: Clause) -> bool:
    """Whether every scene of ``narrow`` is a scene of ``wide``."""
    return (
        KINDS.within(narrow.agent, wide.agent)
        and ACTIONS.within(narrow.action, wide.action)
        and KINDS.within(narrow.patient, wide.patient)
        and (wide.place is None or (narrow.place is not None and PLACES.within(narrow.place, wide.place)))
        and (wide.quality is None or narrow.quality == wide.quality)
    )


def is_apart(first: Clause, second: Clause) -> bool:
    """Whether the two clauses share no scene."""
    return (
        KINDS.apart(first.agent, second.agent)
        or ACTIONS.apart(first.action, second.action)
        or KINDS.apart(first.patient, second.patient)
        or (first.place is not None and second.place is not None and PLACES.apart(first.place, second.place))
        or _qualities_apart(first.quality, second.quality)
    )


def _qualities_apart(first: str | None, second: str | None) -> bool:
    if first is None or second is None or first == second:
        return False
    return DIMENSION[first] == DIMENSION[second]


def relation(narrow: Clause, wide: Clause) -> Relation:
    """How the scenes of the first clause stand to those of the second."""
    if is_within(narrow, wide):
        return "within"
    return "apart" if is_apart(narrow, wide) else "open"
