"""Reads mini sentences back and decides them by looking through all scenes; shares only word tables with the generator.

Every word class is one letter, so that the grammar is one regular expression.
"""

import itertools
import re
from dataclasses import dataclass

from mtl.tasks.mini_world import ACTIONS, ANYWHERE, KINDS, PLACES, SYNONYM, Tree

Leaves = frozenset[str]
CONCEPT = {word: concept for concept, word in SYNONYM.items()}


def named_sets(tree: Tree) -> dict[str, Leaves]:
    wide = {name: frozenset(below) for name, below in tree.items()}
    return wide | {leaf: frozenset({leaf}) for below in tree.values() for leaf in below}


SETS = [named_sets(tree) for tree in (KINDS, ACTIONS, PLACES)]
SCENES = list(itertools.product(*(sorted(frozenset().union(*named.values())) for named in SETS)))


def letters() -> dict[str, str]:
    """The class of every word; a word of two classes would make the grammar ambiguous."""
    pairs = [("never", "x"), ("the", "d")]
    for named, forms in zip(SETS, (("n", "N"), ("V", "v"), ("p",)), strict=True):
        for concept in named.keys() - {ANYWHERE}:
            for word in {concept, SYNONYM.get(concept, concept)}:
                pairs += [(word + ending, letter) for ending, letter in zip(("", "s"), forms, strict=False)]
    assert len(dict(pairs)) == len(pairs), "a word stands in two classes"
    return dict(pairs)


CLASS_OF = letters()


@dataclass(frozen=True)
class Reading:
    """The sets of kinds, actions and places that a sentence names, and whether it denies them together."""

    box: tuple[Leaves, Leaves, Leaves]
    denied: bool = False

    def scenes(self) -> frozenset[tuple[str, ...]]:
        return frozenset(
            scene
            for scene in SCENES
            if all(value in allowed for value, allowed in zip(scene, self.box, strict=True)) != self.denied
        )


def concept(word: str) -> str:
    plain = word if word in CONCEPT or any(word in named for named in SETS) else word.removesuffix("s")
    return CONCEPT.get(plain, plain)


def box_of(kind: str | None, action: str | None, place: str | None) -> tuple[Leaves, Leaves, Leaves]:
    everything = [frozenset().union(*named.values()) for named in SETS]
    kinds, actions, places = (
        every if word is None else named[concept(word)]
        for word, named, every in zip((kind, action, place), SETS, everything, strict=True)
    )
    return kinds, actions, places


def read(sentence: str) -> Reading | None:
    """The reading of a statement, None where the sentence is not one."""
    words = sentence.split(" ")
    form = "".join(CLASS_OF[word] for word in words)
    if not re.fullmatch("d(nx?v|Nx?V)p?", form):
        return None
    by_class = dict(zip(form.lower(), words, strict=True))
    return Reading(box_of(by_class["n"], by_class["v"], by_class.get("p")), "x" in form)


def statement(sentence: str) -> Reading:
    reading = read(sentence)
    assert reading is not None, f"not in the grammar: {sentence}"
    return reading


def inference(premise: str, hypothesis: str) -> str:
    first, second = statement(premise).scenes(), statement(hypothesis).scenes()
    if first <= second:
        return "entailment"
    return "neutral" if first & second else "contradiction"


def two_way_inference(premise: str, hypothesis: str) -> str:
    return "entailment" if inference(premise, hypothesis) == "entailment" else "not_entailment"


def paraphrase(sentence1: str, sentence2: str) -> str:
    return "same" if statement(sentence1) == statement(sentence2) else "different"


def acceptability(sentence: str) -> str:
    return "unacceptable" if read(sentence) is None else "acceptable"


def answerability(question: str, sentence: str) -> str:
    telling = statement(sentence)
    match question.split(" "):
        case ["who", action]:
            granted, told = box_of(None, action, None), True
        case ["what", "does", "the", kind, "do"]:
            granted, told = box_of(kind, None, None), True
        case ["where", "does", "the", kind, action]:
            granted, told = box_of(kind, action, None), len(telling.box[2]) == 1
        case _:
            raise AssertionError(f"not in the grammar: {question}")
    known = all(narrow <= wide for narrow, wide in zip(telling.box, granted, strict=True))
    return "answerable" if known and told and not telling.denied else "not_answerable"


def similarity(sentence1: str, sentence2: str) -> str:
    boxes = zip(statement(sentence1).box, statement(sentence2).box, SETS, (2, 2, 1), strict=True)
    return f"{sum(weight * likeness(first, second, named) for first, second, named, weight in boxes):.3f}"


def likeness(first: Leaves, second: Leaves, named: dict[str, Leaves]) -> float:
    if first == second:
        return 1.0
    if any(first | second <= wide for wide in named.values()):
        # All places lie in "anywhere", which makes no two of them alike.
        return 0.5 if ANYWHERE not in named or first < second or second < first else 0.0
    return 0.0


SOLVERS = {
    "mini/entail3": inference,
    "mini/entail2": two_way_inference,
    "mini/paraphrase": paraphrase,
    "mini/similarity": similarity,
    "mini/acceptability": acceptability,
    "mini/answerable": answerability,
}
