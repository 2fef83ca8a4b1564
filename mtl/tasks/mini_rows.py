"""One row of each mini task, drawn for the label wanted: texts first, label (or score) last.

Labels are never drawn and believed: what is drawn are clauses (see ``mini_pairs``) from which the label follows.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Final

from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_pairs import NOT_WITHIN, WITHIN, Relation, draw_clause, draw_concepts, draw_pair
from mtl.tasks.mini_world import (
    ACTIONS,
    ANYWHERE,
    KINDS,
    PLACES,
    SYNONYM,
    WIDE_OF,
    Clause,
    Tree,
    choose_words,
    say,
    words_of,
)

Row = tuple[str, ...]
RowMaker = Callable[[Draws, str], Row]

_DENIED: Final = 0.2
_SENSE: Final[dict[str, Relation]] = {"entailment": "within", "contradiction": "apart", "neutral": "open"}
_SENSE_DENIED: Final[dict[str, Relation]] = {"entailment": "apart", "contradiction": "within", "neutral": "open"}


def entail3_row(draws: Draws, label: str) -> Row:
    """(premise, hypothesis, label): the hypothesis holds in every scene of the premise, in none, or in some only.

    A denied hypothesis is entailed by a clause apart from its own and contradicted by one within it.
    """
    denied = draws.chance(_DENIED)
    while True:
        premise, hypothesis = draw_pair(draws, (_SENSE_DENIED if denied else _SENSE)[label])
        first = say(choose_words(draws, premise))
        second = say(choose_words(draws, hypothesis), denied=denied)
        if first != second:
            return first, second, label


def entail2_row(draws: Draws, label: str) -> Row:
    """(premise, hypothesis, label) of the same kind, neutral and contradiction (half each) taken as one label."""
    fine = label if label == "entailment" else draws.pick(("neutral", "contradiction"))
    return *entail3_row(draws, fine)[:2], label


def paraphrase_row(draws: Draws, label: str) -> Row:
    """(sentence1, sentence2, label): one word or more is replaced, by its synonym (same) or by one of another meaning.

    The word of another meaning has a synonym too and names a concept of the same level, so that neither the number of
    words shared nor the words of one sentence tell the label.
    """
    while True:
        clause = draw_clause(draws)
        first, second = choose_words(draws, clause), choose_words(draws, clause)
        changed = [slot for slot, word in asdict(first).items() if word != asdict(second)[slot]]
        if changed:
            break
    if label == "different":
        slot = draws.pick(changed)
        second = replace(second, **{slot: draws.pick(words_of(_OTHER[asdict(clause)[slot]]))})
    denied = draws.chance(0.25)
    return say(first, denied=denied), say(second, denied=denied), label


# The concepts with a synonym stand in twos, in the order of SYNONYM, and each two are of one level of one tree.
_OTHER: Final = dict(zip(SYNONYM, [list(SYNONYM)[place ^ 1] for place in range(len(SYNONYM))], strict=True))


def similarity_row(draws: Draws, band: str) -> Row:
    """(sentence1, sentence2, score) with the score in ``[band, band + 1)`` (5 belongs to band 4)."""
    while True:
        first = draw_clause(draws)
        second = Clause(
            _at_distance(draws, KINDS, first.kind),
            _at_distance(draws, ACTIONS, first.action),
            _at_distance(draws, PLACES, first.place),
        )
        score = similarity(first, second)
        if min(int(score), 4) == int(band):
            return say(choose_words(draws, first)), say(choose_words(draws, second)), f"{score:.3f}"


def _at_distance(draws: Draws, tree: Tree, concept: str) -> str:
    """The concept itself, another one of its family, or any of the tree, each in a third of the cases."""
    wide = WIDE_OF.get(concept, concept)
    return draws.pick(
        draws.pick(((concept,), (wide, *tree[wide]), tuple(other for top in tree for other in (top, *tree[top]))))
    )


def similarity(first: Clause, second: Clause) -> float:
    """Likeness from 0 to 5: kind and action count 2 each where equal, 1 where of one family; the place counts 1 where
    equal (said or not), 0.5 where only one sentence says it.
    """
    return (
        2 * _likeness(first.kind, second.kind)
        + 2 * _likeness(first.action, second.action)
        + (0.5 * (ANYWHERE in (first.place, second.place)) if first.place != second.place else 1)
    )


def _likeness(first: str, second: str) -> float:
    return 1.0 if first == second else 0.5 * (WIDE_OF.get(first, first) == WIDE_OF.get(second, second))


def acceptability_row(draws: Draws, label: str) -> Row:
    """(sentence, label): a sentence about one or several, or one whose verb does not agree or has its order spoilt."""
    words, plural = choose_words(draws, draw_clause(draws)), draws.chance(0.5)
    sentence = say(words, plural=plural, denied=draws.chance(0.25))
    if label == "unacceptable":
        sentence = _disagree(sentence) if draws.chance(0.4) else _misplace(draws, sentence)
    return sentence, label


def _disagree(sentence: str) -> str:
    """The sentence with the other form of its verb."""
    words = [
        word.removesuffix("s") if word in _THIRD_PERSON else _PLAIN.get(word, word) for word in sentence.split(" ")
    ]
    return " ".join(words)


_PLAIN: Final = {
    word: word + "s" for wide, below in ACTIONS.items() for concept in (wide, *below) for word in words_of(concept)
}
_THIRD_PERSON: Final = frozenset(_PLAIN.values())


def _misplace(draws: Draws, sentence: str) -> str:
    """The sentence with two neighbouring words exchanged: never a sentence, for each word class has its own place."""
    words = sentence.split(" ")
    place = draws.pick(range(len(words) - 1))
    words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)


def answerable_row(draws: Draws, label: str) -> Row:
    """(question, sentence, label): "who walks", "what does the dog do", "where does the dog walk".

    Answerable where the sentence is about what the question takes for granted, or something narrower, and says what is
    asked for. Whether a place is said is as likely for both labels, over the three kinds of question.
    """
    asked = draws.pick(("kind", "action", "place"))
    good = label == "answerable"
    said = draws.chance({True: 1.0, False: 0.8}[good] if asked == "place" else {True: 0.6, False: 0.7}[good])
    granted = [slot for slot in ("kind", "action") if slot != asked]
    spoilt = None if good or not (said or asked != "place") else draws.pick(granted)
    kind, asked_kind = draw_concepts(draws, KINDS, NOT_WITHIN if spoilt == "kind" else WITHIN)
    action, asked_action = draw_concepts(draws, ACTIONS, NOT_WITHIN if spoilt == "action" else WITHIN)
    place = draws.pick(PLACES[ANYWHERE]) if said else ANYWHERE
    question = _ask(asked, choose_words(draws, Clause(asked_kind, asked_action, place)))
    return question, say(choose_words(draws, Clause(kind, action, place))), label


def _ask(asked: str, words: Clause) -> str:
    if asked == "kind":
        return f"who {words.action}s"
    about = f"does the {words.kind}"
    return f"what {about} do" if asked == "action" else f"where {about} {words.action}"
