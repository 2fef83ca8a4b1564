"""Reads mini sentences back and decides them by looking through scenes; shares only word tables with the generator.

Every word class is one letter, so that the grammar is three regular expressions. Labels come from truth in scenes: each
slot's values are grouped by which of the texts' concepts they lie in, and one scene per combination is enough.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mtl.tasks.mini_world import ACTIONS, FUNCTION_WORDS, KINDS, PLACES, QUALITIES, SYNONYMS, VERB_WORDS, Taxonomy

Leaves = frozenset[str]
Scene = dict[str, str]


def leaves(tree: Taxonomy, name: str) -> Leaves:
    if name not in tree.children:
        return frozenset({name})
    return frozenset().union(*(leaves(tree, child) for child in tree.children[name]))


def named_sets(tree: Taxonomy) -> dict[str, Leaves]:
    return {name: leaves(tree, name) for name in tree.names}


SETS = {"agent": named_sets(KINDS), "action": named_sets(ACTIONS), "place": named_sets(PLACES)}
SETS["patient"] = SETS["agent"]
SETS |= {slot: {value: frozenset({value}) for value in values} for slot, values in QUALITIES.items()}
EVERYTHING = {slot: frozenset().union(*named.values()) for slot, named in SETS.items()}

CONCEPT = {word: name for name, words in SYNONYMS.items() for word in words}
LETTERS = dict(zip(FUNCTION_WORDS, "tnsbiwheqddr", strict=True))


def letters() -> dict[str, str]:
    """The class of every word; a word of two classes would make the grammar ambiguous."""
    pairs = list(LETTERS.items())
    for names, letter in ((KINDS.names, "k"), (PLACES.names, "l"), ([q for qs in QUALITIES.values() for q in qs], "a")):
        pairs += [(word, letter) for name in names for word in SYNONYMS.get(name, (name,))]
    for verbs in VERB_WORDS.values():
        pairs += [form for verb in verbs for form in ((verb.present, "v"), (verb.participle, "p"))]
    assert len(dict(pairs)) == len(pairs), "a word stands in two classes"
    return dict(pairs)


CLASS_OF = letters()
VERB_OF = {
    form: (action, verb.converse)
    for action, verbs in VERB_WORDS.items()
    for verb in verbs
    for form in (verb.present, verb.participle)
}


@dataclass(frozen=True)
class Reading:
    """The sets a text names by slot, whether it denies them together, and the slot it asks for if it is a question."""

    box: dict[str, Leaves]
    denied: bool = False
    asked: str | None = None

    def holds(self, scene: Scene) -> bool:
        return all(scene[slot] in allowed for slot, allowed in self.box.items()) != self.denied


def _match(pattern: str, words: list[str]) -> dict[str, list[str]] | None:
    found = re.fullmatch(pattern, "".join(CLASS_OF[word] for word in words))
    if found is None:
        return None
    spans = {name: found.span(name) for name in found.groupdict()}
    return {name: words[start:end] for name, (start, end) in spans.items() if start >= 0}


def _read_place(box: dict[str, Leaves], words: list[str] | None) -> None:
    if words:
        box["place"] = SETS["place"][CONCEPT.get(words[-1], words[-1])]


def _read_phrase(box: dict[str, Leaves], slot: str, words: list[str]) -> bool:
    """Enter a noun phrase; False where the grammar does not allow it to the slot."""
    box[slot] = SETS[slot][CONCEPT.get(words[-1], words[-1])]
    if len(words) == 3:
        quality = CONCEPT.get(words[1], words[1])
        box[next(slot for slot, values in QUALITIES.items() if quality in values)] = frozenset({quality})
    return slot == "agent" or (len(words) == 2 and words[0] == "the")


def _read_verb(box: dict[str, Leaves], words: list[str]) -> tuple[str, str]:
    """Enter the action; the slots of what stands before and behind the verb."""
    action, converse = VERB_OF[words[len(words) // 2]]
    box["action"] = SETS["action"][action]
    return ("patient", "agent") if converse != (len(words) == 3) else ("agent", "patient")


def read_statement(sentence: str) -> Reading | None:
    """The reading of a statement, None where the sentence is not one."""
    pattern = r"(?P<front>itl)?(?P<before>[tn]a?k)(?P<verb>v|spb)(?P<behind>[tn]a?k)(?P<end>itl)?"
    parts = _match(pattern, sentence.split(" "))
    if parts is None or {"front", "end"} <= set(parts):
        return None
    box: dict[str, Leaves] = {}
    before, behind = _read_verb(box, parts["verb"])
    _read_place(box, parts.get("front", parts.get("end")))
    if not (_read_phrase(box, before, parts["before"]) and _read_phrase(box, behind, parts["behind"])):
        return None
    return Reading(box, denied="no" in sentence.split(" "))


def read_question(sentence: str) -> Reading | None:
    """The reading of a question: its box holds what it takes for granted, of the asked slot too."""
    words, box = sentence.split(" "), dict[str, Leaves]()
    if parts := _match(r"(?P<asked>w|hk)(?P<verb>v|spb)(?P<other>ta?k)(?P<place>itl)?", words):
        asked, other = _read_verb(box, parts["verb"])
        if len(parts["asked"]) == 2:
            box[asked] = SETS[asked][parts["asked"][1]]
        allowed = _read_phrase(box, other, parts["other"])
    elif parts := _match(r"es(?P<before>ta?k)(?P<participle>p)b(?P<behind>ta?k)", words):
        asked = "place"
        before, behind = _read_verb(box, ["is", *parts["participle"], "by"])
        allowed = _read_phrase(box, before, parts["before"]) and _read_phrase(box, behind, parts["behind"])
    elif parts := _match(r"q(?P<asked>d)s(?P<before>tk)r(?P<verb>v|spb)(?P<behind>tk)(?P<place>itl)?", words):
        asked = parts["asked"][0]
        before, behind = _read_verb(box, parts["verb"])
        allowed = before == "agent"
        _read_phrase(box, before, parts["before"])
        _read_phrase(box, behind, parts["behind"])
    else:
        return None
    _read_place(box, parts.get("place"))
    return Reading(box, asked=asked) if allowed else None


def scenes(first: Reading, second: Reading) -> Iterator[Scene]:
    """One scene for each way in which slots can lie inside or outside the sets that two texts name."""
    slots = sorted({*first.box, *second.box})
    values = []
    for slot in slots:
        named = [reading.box[slot] for reading in (first, second) if slot in reading.box]
        kinds = {tuple(value in one for one in named): value for value in sorted(EVERYTHING[slot])}
        values.append(list(kinds.values()))
    for combination in itertools.product(*values):
        yield dict(zip(slots, combination, strict=True))


def statement(sentence: str) -> Reading:
    reading = read_statement(sentence)
    assert reading is not None, f"not in the grammar: {sentence}"
    return reading


def inference(premise: str, hypothesis: str) -> str:
    first, second = statement(premise), statement(hypothesis)
    truths = {second.holds(scene) for scene in scenes(first, second) if first.holds(scene)}
    return {(True,): "entailment", (False,): "contradiction"}.get(tuple(truths), "neutral")


def two_way_inference(premise: str, hypothesis: str) -> str:
    return "entailment" if inference(premise, hypothesis) == "entailment" else "not_entailment"


def paraphrase(sentence1: str, sentence2: str) -> str:
    first, second = statement(sentence1), statement(sentence2)
    return "same" if all(first.holds(scene) == second.holds(scene) for scene in scenes(first, second)) else "different"


def acceptability(sentence: str) -> str:
    return "unacceptable" if read_statement(sentence) is None else "acceptable"


def answerability(question: str, sentence: str) -> str:
    asking, telling = read_question(question), statement(sentence)
    assert asking is not None, f"not in the grammar: {question}"
    assert asking.asked is not None
    granted = Reading({slot: allowed for slot, allowed in asking.box.items() if slot != asking.asked})
    known = all(granted.holds(scene) for scene in scenes(telling, granted) if telling.holds(scene))
    asked_of = asking.box.get(asking.asked, EVERYTHING[asking.asked])
    told = telling.box.get(asking.asked, EVERYTHING[asking.asked]) < asked_of
    return "answerable" if known and told else "not_answerable"


def similarity(sentence1: str, sentence2: str) -> str:
    first, second = statement(sentence1).box, statement(sentence2).box
    parts = [_likeness(slot, first, second) for slot in {*first, *second}]
    return f"{5 * sum(parts) / len(parts):.3f}"


def _likeness(slot: str, first: dict[str, Leaves], second: dict[str, Leaves]) -> float:
    """Depth of a concept: how many named sets hold it; depth of two: how many hold both."""
    if slot not in first or slot not in second:
        return 0.0
    named = SETS[slot].values()
    over = [{one for one in named if box[slot] <= one} for box in (first, second)]
    return 2 * len(over[0] & over[1]) / (len(over[0]) + len(over[1]))


SOLVERS = {
    "mini/entail3": inference,
    "mini/entail2": two_way_inference,
    "mini/paraphrase": paraphrase,
    "mini/similarity": similarity,
    "mini/acceptability": acceptability,
    "mini/answerable": answerability,
}
