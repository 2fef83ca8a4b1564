"""Pairs of clauses drawn with a chosen relation, so that neither half alone gives the relation away.

A pair is mostly alike: the level of each word and the presence of each modifier come from a joint table per relation,
and nested words replace each other. An open pair has exactly one *cause* for not being nested, a pair apart one
conflict or more. The tables of one slot have the same two margins for every relation (an open pair's after adding the
share of its cause), so each half by itself has the same words and modifiers whatever the relation: where an open pair
has "dog" against "poodle" more often, it also has "poodle" against "dog" more often. An entry of a table is ((level or
presence in the narrow half, in the wide half), weight).
"""

from typing import Final, Literal

from mtl.tasks.mini_clauses import Clause, Relation, relation
from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_world import ACTIONS, CLASS, DIMENSION, KINDS, LEAF, PLACES, QUALITIES, TOP, Taxonomy

Slot = Literal["agent", "action", "patient", "place", "quality"]
Cause = Literal["agent", "action", "patient", "place", "quality", "dimension"]
Conflict = Literal["agent", "action", "patient", "place", "quality", "roles"]
Levels = tuple[int, int]
Mentions = tuple[bool, bool]

_KIND_LEVELS: Final[dict[Relation, tuple[tuple[Levels, float], ...]]] = {
    "within": (
        ((LEAF, LEAF), 0.40),
        ((LEAF, CLASS), 0.20),
        ((CLASS, CLASS), 0.27),
        ((CLASS, TOP), 0.05),
        ((TOP, TOP), 0.08),
    ),
    "apart": (
        ((LEAF, LEAF), 0.35),
        ((LEAF, CLASS), 0.25),
        ((CLASS, LEAF), 0.05),
        ((CLASS, CLASS), 0.22),
        ((CLASS, TOP), 0.05),
        ((TOP, TOP), 0.08),
    ),
    "open": (
        ((LEAF, LEAF), 0.18),
        ((LEAF, CLASS), 0.42),
        ((CLASS, CLASS), 0.05),
        ((CLASS, TOP), 0.05),
        ((TOP, TOP), 0.08),
    ),
}
_ACTION_LEVELS: Final[dict[Relation, tuple[tuple[Levels, float], ...]]] = {
    "within": (((LEAF, LEAF), 0.45), ((LEAF, CLASS), 0.20), ((CLASS, CLASS), 0.35)),
    "apart": (((LEAF, LEAF), 0.40), ((LEAF, CLASS), 0.25), ((CLASS, LEAF), 0.05), ((CLASS, CLASS), 0.30)),
    "open": (((LEAF, LEAF), 0.19), ((LEAF, CLASS), 0.46), ((CLASS, CLASS), 0.09)),
}
_PLACE_LEVELS: Final[tuple[tuple[Levels, float], ...]] = (
    ((LEAF, LEAF), 0.50),
    ((LEAF, CLASS), 0.20),
    ((CLASS, CLASS), 0.30),
)
_PLACES: Final[dict[Relation, tuple[tuple[Mentions, float], ...]]] = {
    "within": (((True, True), 0.15), ((True, False), 0.12), ((False, False), 0.73)),
    "apart": (((True, True), 0.12), ((True, False), 0.15), ((False, True), 0.03), ((False, False), 0.70)),
    "open": (((True, True), 0.05), ((True, False), 0.22), ((False, False), 0.63)),
}
_QUALITIES: Final[dict[Relation, tuple[tuple[Mentions, float], ...]]] = {
    "within": (((True, True), 0.20), ((True, False), 0.12), ((False, False), 0.68)),
    "apart": (((True, True), 0.17), ((True, False), 0.15), ((False, True), 0.03), ((False, False), 0.65)),
    "open": (((True, False), 0.22), ((False, False), 0.58)),
}
# A wide word narrower than the narrow half's, a modifier that only the wide half has, or qualities that do not compare.
_CAUSES: Final[tuple[tuple[Cause, float], ...]] = (
    ("agent", 0.22),
    ("patient", 0.22),
    ("action", 0.26),
    ("place", 0.10),
    ("quality", 0.10),
    ("dimension", 0.10),
)
# Beside the first one; two conflicts are easier to learn from than one.
_MORE_CONFLICTS: Final[tuple[Conflict, ...]] = ("agent", "action", "patient")
_ANOTHER_CONFLICT: Final = 0.45


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
    cause = draws.weighted(_CAUSES) if wanted == "open" else None
    places: Mentions = (False, True) if cause == "place" else draws.weighted(_PLACES[wanted])
    qualities = _draw_qualities(draws, wanted, cause)
    conflicts = _draw_conflicts(draws, places, qualities) if wanted == "apart" else frozenset()

    agent_levels = _draw_levels(draws, "agent", wanted, cause)
    patient_levels = _draw_levels(draws, "patient", wanted, cause)
    action_levels, place_levels = _draw_levels(draws, "action", wanted, cause), draws.weighted(_PLACE_LEVELS)
    wide_agent = draws.pick(KINDS.at(agent_levels[1]))
    wide_patient = vary(draws, KINDS, wide_agent, patient_levels[1], conflict=True)
    sources = (wide_patient, wide_agent) if "roles" in conflicts else (wide_agent, wide_patient)
    wide_action, wide_place = draws.pick(ACTIONS.at(action_levels[1])), draws.pick(PLACES.at(place_levels[1]))
    wide_quality = draws.pick(QUALITIES[draws.pick(("colour", "mood"))])
    narrow = Clause(
        agent=vary(draws, KINDS, sources[0], agent_levels[0], conflict="agent" in conflicts),
        action=vary(draws, ACTIONS, wide_action, action_levels[0], conflict="action" in conflicts),
        patient=vary(draws, KINDS, sources[1], patient_levels[0], conflict="patient" in conflicts),
        place=vary(draws, PLACES, wide_place, place_levels[0], conflict="place" in conflicts) if places[0] else None,
        quality=_vary_quality(draws, wide_quality, cause, conflict="quality" in conflicts) if qualities[0] else None,
    )
    wide = Clause(
        agent=wide_agent,
        action=wide_action,
        patient=wide_patient,
        place=wide_place if places[1] else None,
        quality=wide_quality if qualities[1] else None,
    )
    return narrow, wide


def _draw_levels(draws: Draws, slot: Slot, wanted: Relation, cause: Cause | None) -> Levels:
    if slot == cause:
        return CLASS, LEAF
    return draws.weighted((_ACTION_LEVELS if slot == "action" else _KIND_LEVELS)[wanted])


def _draw_qualities(draws: Draws, wanted: Relation, cause: Cause | None) -> Mentions:
    if cause == "quality":
        return False, True
    return (True, True) if cause == "dimension" else draws.weighted(_QUALITIES[wanted])


def _draw_conflicts(draws: Draws, places: Mentions, qualities: Mentions) -> frozenset[Conflict]:
    """The slots in which a pair is to be apart: one of those that both halves mention, or ``roles``, and maybe more."""
    options: list[Conflict] = ["agent", "agent", "action", "action", "patient", "patient", "roles"]
    if all(places):
        options.append("place")
    if all(qualities):
        options.append("quality")
    first = draws.pick(options)
    if first == "roles":
        return frozenset({first})
    return frozenset({first, *(slot for slot in _MORE_CONFLICTS if draws.chance(_ANOTHER_CONFLICT))})


def _vary_quality(draws: Draws, quality: str, cause: Cause | None, *, conflict: bool) -> str:
    """The narrow half's quality: the same, another of its dimension in a conflict, or one of the other dimension."""
    dimension = DIMENSION[quality]
    if conflict:
        return draws.pick([other for other in QUALITIES[dimension] if other != quality])
    if cause == "dimension":
        return draws.pick(QUALITIES["mood" if dimension == "colour" else "colour"])
    return quality
