"""What a sentence of the mini world means, and pairs of meanings drawn with a chosen relation.

A clause is a *box* of scenes: those whose agent, action, patient, and where they are mentioned place and quality, lie
within the concepts it names. Boxes compare slot by slot, because each slot of a scene varies freely:

* ``within``: every slot that the wide clause mentions is mentioned at least as narrowly by the narrow one;
* ``apart``: some slot that both mention has disjoint concepts;
* ``open``: neither, so that of the scenes of the first some are of the second and some are not.

Pairs are drawn so that neither half gives its relation away: level of each word and presence of each modifier come from
a joint table per relation, and the tables have the same margins. (Moving the mass d from the cells (x, x) and (y, y) to
(x, y) and (y, x) changes no margin.)
"""

from dataclasses import dataclass
from typing import Final, Literal

from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_world import ACTIONS, CLASS, DIMENSION, KINDS, LEAF, PLACES, QUALITIES, TOP, Taxonomy

Relation = Literal["within", "apart", "open"]
Conflict = Literal["agent", "action", "patient", "place", "quality", "roles"]
Joint = tuple[tuple[tuple[int, int], float], ...]
Mentions = tuple[tuple[tuple[bool, bool], float], ...]

# Each table: ((narrow half, wide half), probability).
_KIND_LEVELS: Final[dict[bool, Joint]] = {
    True: (
        ((LEAF, LEAF), 0.36),
        ((LEAF, CLASS), 0.20),
        ((LEAF, TOP), 0.04),
        ((CLASS, CLASS), 0.26),
        ((CLASS, TOP), 0.06),
        ((TOP, TOP), 0.08),
    ),
    False: (
        ((LEAF, LEAF), 0.16),
        ((LEAF, CLASS), 0.40),
        ((LEAF, TOP), 0.04),
        ((CLASS, LEAF), 0.20),
        ((CLASS, CLASS), 0.01),
        ((CLASS, TOP), 0.11),
        ((TOP, CLASS), 0.05),
        ((TOP, TOP), 0.03),
    ),
}
_OTHER_LEVELS: Final[dict[bool, Joint]] = {
    True: (((LEAF, LEAF), 0.45), ((LEAF, CLASS), 0.25), ((CLASS, CLASS), 0.30)),
    False: (((LEAF, LEAF), 0.25), ((LEAF, CLASS), 0.45), ((CLASS, LEAF), 0.20), ((CLASS, CLASS), 0.10)),
}
_MENTIONS: Final[dict[bool, Mentions]] = {
    True: (((True, True), 0.35), ((True, False), 0.25), ((False, False), 0.40)),
    False: (((True, True), 0.15), ((True, False), 0.45), ((False, False), 0.20), ((False, True), 0.20)),
}


@dataclass(frozen=True, slots=True)
class Clause:
    """A box of scenes: concepts of agent, action and patient, and of the place and one quality of the agent if given."""

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


def draw_pair(draws: Draws, wanted: Relation) -> tuple[Clause, Clause]:
    """A (narrow, wide) pair of clauses that stand in the wanted relation; in each, agent and patient differ in word."""
    while True:
        narrow, wide = _draw_attempt(draws, wanted)
        if narrow.agent != narrow.patient and relation(narrow, wide) == wanted:
            return narrow, wide


def draw_clause(draws: Draws) -> Clause:
    """One clause, distributed as the narrow halves of pairs are."""
    return draw_pair(draws, "within")[0]


def vary(draws: Draws, tree: Taxonomy, concept: str, level: int, *, conflict: bool) -> str:
    """A concept of ``level``: disjoint from the given one where there is to be a conflict, nested with it otherwise."""
    if not conflict:
        return draws.pick(tree.nested_at(concept, level))
    while not tree.apart(other := draws.pick(tree.at(level)), concept):
        continue
    return other


def _draw_attempt(draws: Draws, wanted: Relation) -> tuple[Clause, Clause]:
    nested = wanted == "within"
    agent_levels, patient_levels = draws.weighted(_KIND_LEVELS[nested]), draws.weighted(_KIND_LEVELS[nested])
    action_levels, place_levels = draws.weighted(_OTHER_LEVELS[nested]), draws.weighted(_OTHER_LEVELS[nested])
    places, qualities = draws.weighted(_MENTIONS[nested]), draws.weighted(_MENTIONS[nested])
    conflict = _draw_conflict(draws, places, qualities) if wanted == "apart" else None

    wide_agent = draws.pick(KINDS.at(agent_levels[1]))
    wide_patient = vary(draws, KINDS, wide_agent, patient_levels[1], conflict=True)
    sources = (wide_patient, wide_agent) if conflict == "roles" else (wide_agent, wide_patient)
    wide_action, wide_place = draws.pick(ACTIONS.at(action_levels[1])), draws.pick(PLACES.at(place_levels[1]))
    wide_quality = draws.pick(QUALITIES[draws.pick(("colour", "mood"))])
    narrow = Clause(
        agent=vary(draws, KINDS, sources[0], agent_levels[0], conflict=conflict == "agent"),
        action=vary(draws, ACTIONS, wide_action, action_levels[0], conflict=conflict == "action"),
        patient=vary(draws, KINDS, sources[1], patient_levels[0], conflict=conflict == "patient"),
        place=vary(draws, PLACES, wide_place, place_levels[0], conflict=conflict == "place") if places[0] else None,
        quality=_vary_quality(draws, wide_quality, wanted, conflict) if qualities[0] else None,
    )
    wide = Clause(
        agent=wide_agent,
        action=wide_action,
        patient=wide_patient,
        place=wide_place if places[1] else None,
        quality=wide_quality if qualities[1] else None,
    )
    return narrow, wide


def _draw_conflict(draws: Draws, places: tuple[bool, bool], qualities: tuple[bool, bool]) -> Conflict:
    """The slot in which a pair is to be apart, among those that both halves mention; ``roles`` exchanges two."""
    options: list[Conflict] = ["agent", "action", "patient", "roles"]
    if all(places):
        options.append("place")
    if all(qualities):
        options.append("quality")
    return draws.pick(options)


def _vary_quality(draws: Draws, quality: str, wanted: Relation, conflict: Conflict | None) -> str:
    """The narrow half's quality: the same; another of its dimension in a conflict; of the other one in an open pair."""
    dimension = DIMENSION[quality]
    if conflict == "quality":
        return draws.pick([other for other in QUALITIES[dimension] if other != quality])
    if wanted == "open":
        return draws.pick(QUALITIES["mood" if dimension == "colour" else "colour"])
    return quality
