"""The small world of the mini tasks: concepts in trees of two levels, the words that name them, and plain sentences.

A *scene* has one individual of a narrow kind, doing one narrow action at one narrow place. A clause names a concept of
each tree, narrow or wide: a wide concept holds for every scene whose narrow one lies below it. Two concepts are nested
or share nothing. ``anywhere`` is never said, so that a clause without a place holds at every place.

Sentences: ``the noun [never] verb [place]``. The two texts of a row speak of the same individual at the same moment,
and ``never`` denies the whole clause. All is as short and as regular as can be, for the time goes with the words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mtl.tasks.mini_draws import Draws

Tree = Mapping[str, tuple[str, ...]]

KINDS: Final[Tree] = {
    "dog": ("poodle", "beagle"),
    "cat": ("lion", "tiger"),
    "bird": ("robin", "crow"),
}
ACTIONS: Final[Tree] = {
    "move": ("walk", "run"),
    "rest": ("sleep", "sit"),
    "speak": ("whisper", "shout"),
}
ANYWHERE: Final = "anywhere"
PLACES: Final[Tree] = {ANYWHERE: ("outside", "abroad", "upstairs")}
TREES: Final = (KINDS, ACTIONS, PLACES)

SYNONYM: Final = {
    "dog": "hound",
    "bird": "fowl",
    "move": "travel",
    "speak": "talk",
    "walk": "stroll",
    "sleep": "doze",
    "outside": "outdoors",
    "abroad": "overseas",
}
"""The second word of each concept that has two. They stand in twos: each two are of one level of one tree."""

_FUNCTION_WORDS: Final = ("the", "never", "who", "what", "where", "does", "do")

WIDE_OF: Final = {narrow: wide for tree in TREES for wide, below in tree.items() for narrow in below}


@dataclass(frozen=True, slots=True)
class Clause:
    """A concept of each tree: the scenes whose kind, action and place lie within these."""

    kind: str
    action: str
    place: str


def is_within(narrow: str, wide: str) -> bool:
    """Whether every scene of the first concept is one of the second."""
    return narrow == wide or WIDE_OF.get(narrow) == wide


def is_apart(first: str, second: str) -> bool:
    """Whether two concepts of one tree share no scene."""
    return not (is_within(first, second) or is_within(second, first))


def all_words() -> tuple[str, ...]:
    """Every word of the world's sentences and questions, sorted."""
    places = _words(PLACES[ANYWHERE])
    inflected = _words([concept for tree in (KINDS, ACTIONS) for wide in tree for concept in (wide, *tree[wide])])
    return tuple(sorted({*_FUNCTION_WORDS, *places, *inflected, *(word + "s" for word in inflected)}))


def _words(concepts: Iterable[str]) -> list[str]:
    return [word for concept in concepts for word in words_of(concept)]


def words_of(concept: str) -> tuple[str, ...]:
    """The words that name a concept."""
    return (concept, SYNONYM[concept]) if concept in SYNONYM else (concept,)


def choose_words(draws: Draws, clause: Clause) -> Clause:
    """The clause with each concept replaced by one of its words."""
    return Clause(*(draws.pick(words_of(concept)) for concept in (clause.kind, clause.action, clause.place)))


def say(words: Clause, *, denied: bool = False, plural: bool = False) -> str:
    """The sentence of the words chosen for a clause."""
    noun, verb = (words.kind + "s", words.action) if plural else (words.kind, words.action + "s")
    place = () if words.place == ANYWHERE else (words.place,)
    return " ".join(("the", noun, *(("never",) if denied else ()), verb, *place))
