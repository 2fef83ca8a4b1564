"""Pairs of clauses drawn for a wanted relation, so that neither clause alone gives the relation away.

The two concepts of each slot are drawn from a table of *fits*: whether the first is narrow, whether the second is, and
whether they are nested (of one family) or apart. Every table, an open or apart pair's after adding the share of its
cause, has the same two margins: the first concept is narrow in 36 of 60, the second in 27 of 60. And all concepts of a
level are alike. So each clause by itself looks the same whatever the relation.
"""

from typing import Final, Literal

from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_world import ACTIONS, KINDS, PLACES, TREES, Clause, Tree, is_apart

Relation = Literal["within", "open", "apart"]
Fit = tuple[Literal["N", "W"], Literal["N", "W"], Literal["nested", "apart"]]
FitTable = tuple[tuple[Fit, float], ...]


def _table(
    *, nested: tuple[int, int, int, int] = (0, 0, 0, 0), apart: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> FitTable:
    """Weights in the order: both narrow, only the first narrow, only the second narrow, both wide."""
    levels: tuple[tuple[Literal["N", "W"], Literal["N", "W"]], ...] = (("N", "N"), ("N", "W"), ("W", "N"), ("W", "W"))
    near: FitTable = tuple(((*pair, "nested"), weight) for pair, weight in zip(levels, nested, strict=True))
    return (*near, *(((*pair, "apart"), weight) for pair, weight in zip(levels, apart, strict=True)))


WITHIN: Final = _table(nested=(27, 9, 0, 24))
NOT_WITHIN: Final = _table(nested=(0, 0, 20, 0), apart=(7, 29, 0, 4))
_WIDENED: Final = _table(nested=(0, 0, 1, 0))
# One slot in three is an open pair's cause: 20 of 60 widened, and these 40.
_BESIDE_WIDENED: Final = _table(nested=(7, 29, 0, 4))
_APART: Final = _table(apart=(16, 20, 11, 13))
_PLACES_APART: Final = _table(apart=(1, 0, 0, 0))
_BESIDE_APART: Final = _table(nested=(34, 38, 20, 28))
# Places are the cause of one apart pair in five: 24 of 120 both narrow, and these 96.
_PLACES_BESIDE_APART: Final = _table(nested=(10, 38, 20, 28))

_CAUSES_APART: Final[tuple[tuple[tuple[str, ...], float], ...]] = (
    (("kind",), 0.3),
    (("action",), 0.3),
    (("place",), 0.2),
    (("kind", "action"), 0.2),
)


def draw_pair(draws: Draws, relation: Relation) -> tuple[Clause, Clause]:
    """Two clauses: the first's scenes all among the second's (within), some of them (open), or none (apart)."""
    tables = {"kind": WITHIN, "action": WITHIN, "place": WITHIN}
    if relation == "open":
        cause = draws.pick(("kind", "action", "place"))
        tables = {slot: _WIDENED if slot == cause else _BESIDE_WIDENED for slot in tables}
    elif relation == "apart":
        causes = draws.weighted(_CAUSES_APART)
        tables = {slot: _APART if slot in causes else _BESIDE_APART for slot in tables}
        tables["place"] = _PLACES_APART if "place" in causes else _PLACES_BESIDE_APART
    pairs = [draw_concepts(draws, tree, tables[slot]) for tree, slot in zip(TREES, tables, strict=True)]
    return Clause(*(first for first, _ in pairs)), Clause(*(second for _, second in pairs))


def draw_concepts(draws: Draws, tree: Tree, table: FitTable) -> tuple[str, str]:
    """Two concepts of a tree whose fit is drawn from the table."""
    (first, second, fit) = draws.weighted(table)
    while True:
        one = _family(draws, tree)
        other = one if fit == "nested" else _family(draws, tree)
        pair = one[first], other[second]
        if fit == "nested" or is_apart(*pair):
            return pair


def _family(draws: Draws, tree: Tree) -> dict[Literal["N", "W"], str]:
    wide = draws.pick(tuple(tree))
    return {"W": wide, "N": draws.pick(tree[wide])}


def draw_clause(draws: Draws) -> Clause:
    """A clause by itself."""
    return Clause(*(_family(draws, tree)["N" if draws.chance(0.6) else "W"] for tree in (KINDS, ACTIONS, PLACES)))
