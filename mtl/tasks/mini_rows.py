"""One row of each mini task, drawn with the label wanted: texts first, label (or score) last.

Labels are never drawn and believed: a pair of clauses is drawn for the wanted label and its label follows from the
clauses alone (see ``mini_pairs``), so the texts carry it exactly.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from mtl.tasks.mini_clauses import Clause, Relation
from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_pairs import draw_clause, draw_pair, vary
from mtl.tasks.mini_sentences import Asked, Question, answers, ask, mentions, say, spoil
from mtl.tasks.mini_world import ACTIONS, CLASS, DIMENSION, KINDS, LEAF, PLACES, QUALITIES, Taxonomy

Row = tuple[str, ...]
RowMaker = Callable[[Draws, str], Row]
Polarity = tuple[bool, bool]

# (premise denied, hypothesis denied), by label: each label has the same shares of denied premises (0.06) and of denied
# hypotheses (0.12), so that "no" alone tells nothing.
_POLARITIES: Final[dict[str, tuple[tuple[Polarity, float], ...]]] = {
    "entailment": (((False, False), 0.88), ((False, True), 0.06), ((True, True), 0.06)),
    "contradiction": (((False, False), 0.82), ((False, True), 0.12), ((True, False), 0.06)),
    "neutral": (((False, False), 0.85), ((False, True), 0.09), ((True, False), 0.03), ((True, True), 0.03)),
}
_SENSE: Final[dict[str, Relation]] = {"entailment": "within", "contradiction": "apart", "neutral": "open"}
_SENSE_DENIED: Final[dict[str, Relation]] = {"entailment": "apart", "contradiction": "within", "neutral": "open"}
_ASKED: Final[tuple[tuple[Asked, float], ...]] = (
    ("agent", 0.3),
    ("patient", 0.3),
    ("place", 0.2),
    ("colour", 0.1),
    ("mood", 0.1),
)


def entail3_row(draws: Draws, label: str) -> Row:
    """(premise, hypothesis, label): true in every scene of the premise, in none, or in some only.

    With a denial the relation of the boxes changes its sense: a denied hypothesis is entailed by a box apart from
    its own and contradicted by one within it; a denied premise tells only of the boxes within its own.
    """
    premise_denied, hypothesis_denied = draws.weighted(_POLARITIES[label])
    while True:
        if premise_denied:
            hypothesis, premise = draw_pair(draws, draws.pick(("open", "apart")) if label == "neutral" else "within")
        else:
            premise, hypothesis = draw_pair(draws, (_SENSE_DENIED if hypothesis_denied else _SENSE)[label])
        first, second = say(draws, premise, denied=premise_denied), say(draws, hypothesis, denied=hypothesis_denied)
        if first != second:
            return first, second, label


def entail2_row(draws: Draws, label: str) -> Row:
    """(premise, hypothesis, label) of the same kind, neutral and contradiction (half each) taken as one label."""
    fine = label if label == "entailment" else draws.pick(("neutral", "contradiction"))
    return *entail3_row(draws, fine)[:2], label


def paraphrase_row(draws: Draws, label: str) -> Row:
    """(sentence1, sentence2, label): ``same`` where both hold in the same scenes, reworded; else one change."""
    clause = draw_clause(draws)
    first, second = say(draws, clause), say(draws, clause)
    while first == second:
        clause = draw_clause(draws)
        first, second = say(draws, clause), say(draws, clause)
    if label == "different":
        # In the same form as the rewording would have had, so that no form is a sign of either label.
        form, other = _form(second), _changed(draws, clause)
        while _form(second := say(draws, other)) != form:
            continue
    return (first, second, label) if draws.chance(0.5) else (second, first, label)


def _form(sentence: str) -> tuple[bool, bool]:
    """Whether the sentence is passive, and whether its place stands first."""
    return " is " in sentence, sentence.startswith("in ")


def _changed(draws: Draws, clause: Clause) -> Clause:
    """Another clause: roles exchanged, or one slot's concept replaced by another of its level."""
    slots = ["roles", "roles", "agent", "action", "patient", *(("place",) if clause.place else ())]
    slot = draws.pick([*slots, *(("quality",) if clause.quality else ())])
    agent, action, patient, place, quality = _slots(clause)
    if slot == "roles":
        agent, patient = patient, agent
    elif slot == "agent":
        agent = _sibling(draws, KINDS, clause.agent)
    elif slot == "action":
        action = _sibling(draws, ACTIONS, clause.action)
    elif slot == "patient":
        patient = _sibling(draws, KINDS, clause.patient)
    elif clause.place and slot == "place":
        place = _sibling(draws, PLACES, clause.place)
    elif clause.quality:
        quality = draws.pick([new for new in QUALITIES[DIMENSION[clause.quality]] if new != clause.quality])
    return Clause(agent, action, patient, place, quality)


def _slots(clause: Clause) -> tuple[str, str, str, str | None, str | None]:
    return clause.agent, clause.action, clause.patient, clause.place, clause.quality


def _sibling(draws: Draws, tree: Taxonomy, concept: str) -> str:
    return vary(draws, tree, concept, tree.level[concept], conflict=True)


def similarity_row(draws: Draws, band: str) -> Row:
    """(sentence1, sentence2, score) with the score in ``[band, band + 1)`` (5.000 belongs to band 4)."""
    while True:
        first, other = draw_clause(draws), draw_clause(draws)
        kept = (int(band) + draws.unit()) / 5
        second = Clause(
            agent=_nearer(draws, KINDS, first.agent, other.agent, kept),
            action=_nearer(draws, ACTIONS, first.action, other.action, kept),
            patient=_nearer(draws, KINDS, first.patient, other.patient, kept),
            place=first.place if draws.chance(kept) else other.place,
            quality=first.quality if draws.chance(kept) else other.quality,
        )
        score = similarity(first, second)
        if min(int(score), 4) == int(band) and second.agent != second.patient:
            return say(draws, first), say(draws, second), f"{float(score):.3f}"


def _nearer(draws: Draws, tree: Taxonomy, first: str, other: str, kept: float) -> str:
    """The other concept, or with probability ``kept`` the first or one nested with it."""
    if not draws.chance(kept):
        return other
    return draws.pick(tree.nested_at(first, draws.pick((LEAF, CLASS)))) if draws.chance(0.3) else first


def similarity(first: Clause, second: Clause) -> Fraction:
    """Likeness from 0 to 5: five times the mean likeness of the slots that either clause mentions.

    A slot that only one mentions counts 0. Kinds, actions and places compare by 2 d(a and b) / (d(a) + d(b)), d being
    the depth in the tree and d(a and b) that of the deepest concept above both (Wu and Palmer 1994, equation 1).
    Colour and mood count 1 where equal, otherwise 0, and are different slots.
    """
    parts = [_likeness(KINDS, first.agent, second.agent), _likeness(ACTIONS, first.action, second.action)]
    parts.append(_likeness(KINDS, first.patient, second.patient))
    if first.place is not None and second.place is not None:
        parts.append(_likeness(PLACES, first.place, second.place))
    elif first.place is not None or second.place is not None:
        parts.append(Fraction(0))
    qualities = [quality for quality in (first.quality, second.quality) if quality is not None]
    if len(set(qualities)) == 1 and len(qualities) == 2:
        parts.append(Fraction(1))
    else:
        parts.extend(Fraction(0) for _ in {DIMENSION[quality] for quality in qualities})
    return 5 * sum(parts, Fraction(0)) / len(parts)


def _likeness(tree: Taxonomy, first: str, second: str) -> Fraction:
    return Fraction(2 * tree.shared_depth(first, second), tree.depth(first) + tree.depth(second))


def acceptability_row(draws: Draws, label: str) -> Row:
    """(sentence, label): a statement or denial of the grammar, or one with an error in it."""
    sentence = say(draws, draw_clause(draws), denied=draws.chance(0.15))
    return (sentence if label == "acceptable" else spoil(draws, sentence)), label


def answerable_row(draws: Draws, label: str) -> Row:
    """(question, sentence, label): whether the sentence answers the question."""
    asked = draws.weighted(_ASKED)
    named = draws.chance(0.5)
    relations: Sequence[Relation] = ("within",) if label == "answerable" else ("open", "apart")
    # Mostly a bad answer, too, mentions what is asked for: otherwise a sentence with a place would look like an answer.
    mentioned = label == "answerable" or draws.chance(0.8)
    while True:
        statement, clause = draw_pair(draws, draws.pick(relations))
        kind = {"agent": clause.agent, "patient": clause.patient}.get(asked) if named else None
        if kind is not None and KINDS.level[kind] == LEAF:
            kind = KINDS.parent[kind]
        question = Question(clause, asked, kind)
        if answers(statement, question) == (label == "answerable") and (not mentioned or mentions(statement, asked)):
            return ask(draws, question), say(draws, statement), label
