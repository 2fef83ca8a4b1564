"""From meanings of the mini world to words: statements, denials and questions, and sentences with an error.

Grammar (lower-case words, single spaces, no punctuation; ``[x]`` optional, ``|`` either)::

    statement  = plain [place] | place plain
    place      = "in the" PLACE
    plain      = subject PRESENT object | object "is" PARTICIPLE "by" subject
    agent      = ("the" | "no") [QUALITY] KIND          patient = "the" KIND
    question   = ("who" | "which" KIND) PRESENT phrase [place]
               | ("who" | "which" KIND) "is" PARTICIPLE "by" phrase [place]
               | "where is" phrase PARTICIPLE "by" phrase
               | "what" ("colour" | "mood") "is" agent "that" (PRESENT | "is" PARTICIPLE "by") patient [place]

Subject and object of a verb are the agent and the patient of its action; of "follows", the converse of "leads", they
are the patient and the agent. A quality stands only with the agent. In questions ``phrase`` is the agent or the
patient, whichever is not asked for. A statement whose agent has "no" denies the clause as a whole: it holds in
exactly the scenes that are not in the clause's box.
"""

from dataclasses import dataclass
from typing import Literal

from mtl.tasks.mini_clauses import Clause, is_within
from mtl.tasks.mini_draws import Draws
from mtl.tasks.mini_world import DIMENSION, KINDS, VERB_WORDS, VerbWord, words_of

Asked = Literal["agent", "patient", "place", "colour", "mood"]

_PASSIVE = 0.1
_PLACE_FIRST = 0.1


@dataclass(frozen=True, slots=True)
class Question:
    """Asks for one slot of a scene in the clause's box; ``asked_kind`` narrows an asked agent or patient ("which dog").

    The clause's own entry for the slot that is asked for does not count.
    """

    clause: Clause
    asked: Asked
    asked_kind: str | None


def answers(statement: Clause, question: Question) -> bool:
    """Whether every scene of the statement is one asked about, and the statement says more of the asked slot.

    Of an agent or a patient it must name a kind strictly within ``asked_kind`` where there is one; a place, a colour
    or a mood must be mentioned.
    """
    wide, asked = question.clause, question.asked
    agent, patient, place, quality = wide.agent, wide.patient, wide.place, wide.quality
    told = mentions(statement, asked)
    if asked == "agent":
        agent, quality, told = statement.agent, None, _narrower(statement.agent, question.asked_kind)
    elif asked == "patient":
        patient, told = statement.patient, _narrower(statement.patient, question.asked_kind)
    elif asked == "place":
        place = None
    else:
        quality = None
    return told and is_within(statement, Clause(agent, wide.action, patient, place, quality))


def mentions(statement: Clause, asked: Asked) -> bool:
    """Whether the statement says anything of the slot."""
    if asked == "place":
        return statement.place is not None
    if asked == "colour" or asked == "mood":
        return statement.quality is not None and DIMENSION[statement.quality] == asked
    return True


def _narrower(kind: str, asked_kind: str | None) -> bool:
    return asked_kind is None or (kind != asked_kind and KINDS.within(kind, asked_kind))


def say(draws: Draws, clause: Clause, *, denied: bool = False) -> str:
    """A sentence for the clause, or for its denial, in one of the ways the grammar has."""
    verb = draws.pick(VERB_WORDS[clause.action])
    agent, patient = _agent(draws, clause, denied=denied), _patient(draws, clause)
    subject, object_ = (patient, agent) if verb.converse else (agent, patient)
    passive = draws.chance(_PASSIVE)
    plain = f"{object_} is {verb.participle} by {subject}" if passive else f"{subject} {verb.present} {object_}"
    if clause.place is None:
        return plain
    place = _place(draws, clause.place)
    return f"{place} {plain}" if draws.chance(_PLACE_FIRST) else f"{plain} {place}"


def ask(draws: Draws, question: Question) -> str:
    """A sentence for the question."""
    clause = question.clause
    verb = draws.pick(VERB_WORDS[clause.action])
    place = "" if clause.place is None or question.asked == "place" else f" {_place(draws, clause.place)}"
    patient = _patient(draws, clause)
    if question.asked == "colour" or question.asked == "mood":
        agent = f"the {draws.pick(words_of(clause.agent))}"
        return f"what {question.asked} is {agent} that {_predicate(verb, patient, of_agent=True)}{place}"
    agent = _agent(draws, clause, denied=False)
    if question.asked == "place":
        subject, object_ = (patient, agent) if verb.converse else (agent, patient)
        return f"where is {object_} {verb.participle} by {subject}"
    asked = "who" if question.asked_kind is None else f"which {question.asked_kind}"
    of_agent = question.asked == "agent"
    return f"{asked} {_predicate(verb, patient if of_agent else agent, of_agent=of_agent)}{place}"


def _predicate(verb: VerbWord, other: str, *, of_agent: bool) -> str:
    """What is said of the agent (or else the patient), the other one being named by ``other``."""
    active = of_agent != verb.converse
    return f"{verb.present} {other}" if active else f"is {verb.participle} by {other}"


def _agent(draws: Draws, clause: Clause, *, denied: bool) -> str:
    noun = draws.pick(words_of(clause.agent))
    determiner = "no" if denied else "the"
    return (
        f"{determiner} {noun}"
        if clause.quality is None
        else f"{determiner} {draws.pick(words_of(clause.quality))} {noun}"
    )


def _patient(draws: Draws, clause: Clause) -> str:
    return f"the {draws.pick(words_of(clause.patient))}"


def _place(draws: Draws, place: str) -> str:
    return f"in the {draws.pick(words_of(place))}"


def spoil(draws: Draws, sentence: str) -> str:
    """The sentence with one error that the grammar never allows.

    A function word left out, a word said twice, two neighbours exchanged, a present in place of a participle (or a
    stray "is" or "by" beside a present). Every good sentence alternates word classes in a fixed order, so each of
    these leaves the grammar.
    """
    words = sentence.split(" ")
    error = draws.pick(("omit", "repeat", "exchange", "form"))
    if error == "omit":
        del words[draws.pick([i for i, word in enumerate(words) if word in {"the", "no", "is", "by", "in"}])]
    elif error == "repeat":
        place = draws.pick(range(len(words)))
        words.insert(place, words[place])
    elif error == "exchange":
        place = draws.pick(range(len(words) - 1))
        words[place], words[place + 1] = words[place + 1], words[place]
    else:
        _spoil_form(draws, words)
    return " ".join(words)


def _spoil_form(draws: Draws, words: list[str]) -> None:
    for place, word in enumerate(words):
        if word in _PRESENT_OF:
            words[place] = _PRESENT_OF[word]
            return
    place = next(i for i, word in enumerate(words) if word in _PRESENTS)
    if draws.chance(0.5):
        words.insert(place, "is")
    else:
        words.insert(place + 1, "by")


_PRESENT_OF = {verb.participle: verb.present for verbs in VERB_WORDS.values() for verb in verbs}
_PRESENTS = frozenset(_PRESENT_OF.values())
