"""The small world of the mini tasks: its kinds, actions, places and qualities, and the words that name them.

A *scene* of the world has one agent and one patient (each of one of eighteen leaf kinds), one action that the agent
does to the patient, one place, and a colour and a mood of the agent. Kinds, actions and places form trees: a concept
that is not a leaf names the set of leaves below it, and two concepts are either nested or disjoint. All concepts of one
level of a tree have equally many children, so that no word is rarer than its neighbours for want of narrower ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LEAF: Final = 0
CLASS: Final = 1
TOP: Final = 2


class Taxonomy:
    """A tree of named concepts, every path from a leaf to its root passing the levels LEAF, CLASS (, TOP) in order."""

    def __init__(self, children: Mapping[str, tuple[str, ...]]) -> None:
        self.parent = {child: parent for parent, below in children.items() for child in below}
        self.children = dict(children)
        self.names = tuple(dict.fromkeys([*self.parent, *children]))
        self.level = {name: self._height(name) for name in self.names}
        self._levels = {
            level: tuple(name for name in self.names if self.level[name] == level) for level in set(self.level.values())
        }
        self.root_level = max(self._levels)
        self._paths = {name: self._path(name) for name in self.names}
        self._below = {
            (name, level): tuple(low for low in self._levels[level] if name in self._paths[low])
            for name in self.names
            for level in self._levels
        }

    def _height(self, name: str) -> int:
        return 0 if name not in self.children else 1 + self._height(self.children[name][0])

    def _path(self, name: str) -> tuple[str, ...]:
        return (name, *self._path(self.parent[name])) if name in self.parent else (name,)

    def at(self, level: int) -> tuple[str, ...]:
        """All concepts of one level."""
        return self._levels[level]

    def within(self, narrow: str, wide: str) -> bool:
        """Whether every leaf of ``narrow`` is a leaf of ``wide``."""
        return wide in self._paths[narrow]

    def apart(self, first: str, second: str) -> bool:
        """Whether the two concepts share no leaf."""
        return not (self.within(first, second) or self.within(second, first))

    def nested_at(self, name: str, level: int) -> tuple[str, ...]:
        """The concepts of ``level`` nested with ``name``: below it, itself, or the one above it."""
        above = tuple(wide for wide in self._paths[name] if self.level[wide] == level)
        return above or self._below[name, level]

    def depth(self, name: str) -> int:
        """Steps from an unnamed origin above all roots: 1 for a root, one more for each level below."""
        return self.root_level - self.level[name] + 1

    def shared_depth(self, first: str, second: str) -> int:
        """Depth of the deepest concept that both lie within; 0 where only the unnamed origin is."""
        return max((self.depth(wide) for wide in self._paths[first] if wide in self._paths[second]), default=0)


@dataclass(frozen=True)
class VerbWord:
    """One verb: its present and participle, and whether its subject is the action's patient instead of its agent."""

    present: str
    participle: str
    converse: bool = False


KINDS: Final = Taxonomy(
    {
        "dog": ("poodle", "beagle", "terrier"),
        "cat": ("tabby", "siamese", "persian"),
        "bird": ("robin", "sparrow", "crow"),
        "medic": ("nurse", "surgeon", "dentist"),
        "artist": ("painter", "sculptor", "potter"),
        "musician": ("drummer", "pianist", "violinist"),
        "animal": ("dog", "cat", "bird"),
        "person": ("medic", "artist", "musician"),
    }
)
ACTIONS: Final = Taxonomy(
    {
        "touch": ("hug", "pat"),
        "attack": ("bite", "kick"),
        "help": ("feed", "wash"),
        "accompany": ("lead", "carry"),
    }
)
PLACES: Final = Taxonomy(
    {
        "house": ("kitchen", "bedroom"),
        "town": ("market", "station"),
        "country": ("meadow", "forest"),
    }
)
QUALITIES: Final[dict[str, tuple[str, ...]]] = {
    "colour": ("white", "black", "brown", "grey"),
    "mood": ("happy", "sad", "angry", "calm"),
}
DIMENSION: Final = {quality: dimension for dimension, qualities in QUALITIES.items() for quality in qualities}

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "happy": ("happy", "glad"),
    "sad": ("sad", "gloomy"),
    "angry": ("angry", "furious"),
    "calm": ("calm", "quiet"),
    "forest": ("forest", "woods"),
}
"""Words of a kind, place or quality that has more than the one it is called by."""

VERB_WORDS: Final[dict[str, tuple[VerbWord, ...]]] = {
    "touch": (VerbWord("touches", "touched"),),
    "hug": (VerbWord("hugs", "hugged"), VerbWord("embraces", "embraced")),
    "pat": (VerbWord("pats", "patted"),),
    "attack": (VerbWord("attacks", "attacked"),),
    "bite": (VerbWord("bites", "bitten"),),
    "kick": (VerbWord("kicks", "kicked"),),
    "help": (VerbWord("helps", "helped"),),
    "feed": (VerbWord("feeds", "fed"),),
    "wash": (VerbWord("washes", "washed"),),
    "accompany": (VerbWord("accompanies", "accompanied"),),
    "lead": (VerbWord("leads", "led"), VerbWord("follows", "followed", converse=True)),
    "carry": (VerbWord("carries", "carried"),),
}
FUNCTION_WORDS: Final = ("the", "no", "is", "by", "in", "who", "which", "where", "what", "colour", "mood", "that")


def words_of(concept: str) -> tuple[str, ...]:
    """The words that name a kind, a place or a quality."""
    return SYNONYMS.get(concept, (concept,))


def all_words() -> tuple[str, ...]:
    """Every word of the world's language, sorted."""
    nominal = [word for name in (*KINDS.names, *PLACES.names, *DIMENSION) for word in words_of(name)]
    verbal = [form for verbs in VERB_WORDS.values() for verb in verbs for form in (verb.present, verb.participle)]
    return tuple(sorted({*FUNCTION_WORDS, *nominal, *verbal}))
