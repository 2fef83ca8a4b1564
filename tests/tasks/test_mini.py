"""The mini tasks: the same rows everywhere, exact labels, disjoint splits, and no label told by half a row."""

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from mini_solver import SOLVERS

from mtl.errors import ConfigError
from mtl.tasks import mini
from mtl.tasks.spec import TaskSpec

SPLITS = ("train", "dev", "test")
GOLDEN_SHA256 = "220b128e3347f8ee886772480f01fab9303f3bf3859eb6e91395e75d5180dad6"

Columns = dict[str, list[str]]


@pytest.fixture(scope="module")
def suite() -> dict[tuple[str, str], Columns]:
    return {(spec.name, split): mini.generate(spec.name, split) for spec in mini.SPECS for split in SPLITS}


def spec_parameters() -> list[object]:
    return [pytest.param(spec, id=spec.name) for spec in mini.SPECS]


def texts_of(spec: TaskSpec, columns: Columns) -> list[tuple[str, ...]]:
    return list(zip(*(columns[name] for name in spec.text_columns), strict=True))


def test_rows_are_the_same_on_every_machine(suite: dict[tuple[str, str], Columns]) -> None:
    canonical = json.dumps([[*key, columns] for key, columns in suite.items()], separators=(",", ":"))
    assert hashlib.sha256(canonical.encode()).hexdigest() == GOLDEN_SHA256


def test_a_split_does_not_depend_on_what_was_generated_before(suite: dict[tuple[str, str], Columns]) -> None:
    assert mini.generate("mini/entail2", "dev") == suite["mini/entail2", "dev"]


@pytest.mark.parametrize("spec", spec_parameters())
def test_columns_and_row_counts_are_those_of_the_spec(spec: TaskSpec, suite: dict[tuple[str, str], Columns]) -> None:
    assert tuple(spec.splits) == SPLITS
    for split, part in spec.splits.items():
        columns = suite[spec.name, split]
        assert tuple(columns) == (*spec.text_columns, *((spec.label_column,) if part.labelled else ()))
        assert {len(column) for column in columns.values()} == {part.official_rows}


@pytest.mark.parametrize("spec", spec_parameters())
def test_independent_solver_agrees_with_every_label(spec: TaskSpec, suite: dict[tuple[str, str], Columns]) -> None:
    for split in ("train", "dev"):
        columns = suite[spec.name, split]
        for texts, label in zip(texts_of(spec, columns), columns[spec.label_column], strict=True):
            assert SOLVERS[spec.name](*texts) == label, texts


@pytest.mark.parametrize("spec", spec_parameters())
def test_solver_reads_every_unlabelled_row(spec: TaskSpec, suite: dict[tuple[str, str], Columns]) -> None:
    found = Counter(SOLVERS[spec.name](*texts) for texts in texts_of(spec, suite[spec.name, "test"]))
    if spec.kind == "classification":
        assert set(found) == set(spec.labels)
        assert max(found.values()) - min(found.values()) <= 1


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("spec", spec_parameters())
def test_labels_are_equally_frequent(spec: TaskSpec, split: str, suite: dict[tuple[str, str], Columns]) -> None:
    labels: Iterable[str] = suite[spec.name, split][spec.label_column]
    if spec.kind == "regression":
        labels = [str(min(int(float(score)), 4)) for score in labels]
    counts = Counter(labels)
    assert len(counts) == (len(spec.labels) or 5)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_no_text_stands_in_two_splits_nor_twice_in_one(suite: dict[tuple[str, str], Columns]) -> None:
    split_of: dict[tuple[str, ...], str] = {}
    for spec in mini.SPECS:
        for split in SPLITS:
            keys = [tuple(sorted(texts)) for texts in texts_of(spec, suite[spec.name, split])]
            assert len(set(keys)) == len(keys)
            for key in keys:
                assert split_of.setdefault(key, split) == split, key


def test_no_pair_repeats_one_sentence(suite: dict[tuple[str, str], Columns]) -> None:
    for spec in mini.SPECS:
        if spec.kind == "classification" and len(spec.text_columns) == 2:
            assert all(first != second for first, second in texts_of(spec, suite[spec.name, "train"]))


def test_vocabulary_is_exactly_the_words_in_use(suite: dict[tuple[str, str], Columns]) -> None:
    used: set[str] = set()
    for spec in mini.SPECS:
        for split in SPLITS:
            used.update(
                word for texts in texts_of(spec, suite[spec.name, split]) for word in " ".join(texts).split(" ")
            )
    assert tuple(sorted(used)) == mini.vocabulary()
    assert all(word.isascii() and word.isalpha() and word.islower() for word in used)


def naive_bayes_accuracy(
    features: Callable[[tuple[str, ...]], set[str]], spec: TaskSpec, train: Columns, dev: Columns
) -> float:
    """Accuracy on dev of naive Bayes over sets of features counted in train."""
    seen: dict[str, Counter[str]] = {label: Counter() for label in spec.labels}
    for texts, label in zip(texts_of(spec, train), train[spec.label_column], strict=True):
        seen[label].update(features(texts))
    total = Counter(train[spec.label_column])

    def evidence(texts: tuple[str, ...], label: str) -> float:
        return sum(math.log((seen[label][feature] + 1) / (total[label] + 2)) for feature in features(texts))

    rows = list(zip(texts_of(spec, dev), dev[spec.label_column], strict=True))
    guesses = [max(spec.labels, key=lambda label: evidence(texts, label)) for texts, _ in rows]
    return sum(guess == label for guess, (_, label) in zip(guesses, rows, strict=True)) / len(rows)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("name", [spec.name for spec in mini.SPECS if len(spec.text_columns) == 2 and spec.labels])
def test_one_text_of_a_pair_does_not_tell_the_label(
    name: str, side: int, suite: dict[tuple[str, str], Columns]
) -> None:
    def features(texts: tuple[str, ...]) -> set[str]:
        words = texts[side].split(" ")
        return {*words, str(len(words)), *map(" ".join, itertools.pairwise(words))}

    spec = next(spec for spec in mini.SPECS if spec.name == name)
    accuracy = naive_bayes_accuracy(features, spec, suite[name, "train"], suite[name, "dev"])
    assert accuracy < 1 / len(spec.labels) + 0.08


@pytest.mark.parametrize(
    ("name", "most"),
    [("mini/entail3", 0.60), ("mini/entail2", 0.75), ("mini/paraphrase", 0.80), ("mini/answerable", 0.80)],
)
def test_counting_shared_words_is_not_enough(name: str, most: float, suite: dict[tuple[str, str], Columns]) -> None:
    def features(texts: tuple[str, ...]) -> set[str]:
        first, second = (set(text.split(" ")) for text in texts)
        return {f"both {len(first & second)}", f"first {len(first - second)}", f"second {len(second - first)}"}

    spec = next(spec for spec in mini.SPECS if spec.name == name)
    assert naive_bayes_accuracy(features, spec, suite[name, "train"], suite[name, "dev"]) < most


def test_few_rows_do_not_show_the_taxonomy(suite: dict[tuple[str, str], Columns]) -> None:
    """Most dev rows of entail2 hold a pair of differing words that its own training rows never put together."""

    def pairs(texts: tuple[str, ...]) -> set[tuple[str, str]]:
        first, second = (set(text.split(" ")) for text in texts)
        return {(one, two) for one in first - second for two in second - first}

    spec = next(spec for spec in mini.SPECS if spec.name == "mini/entail2")
    shown = set().union(*(pairs(texts) for texts in texts_of(spec, suite[spec.name, "train"])))
    dev = [pairs(texts) for texts in texts_of(spec, suite[spec.name, "dev"])]
    assert sum(bool(one - shown) for one in dev) / len(dev) > 0.5


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(ConfigError, match="mini/entail3"):
        mini.generate("mini/entail4", "train")
    with pytest.raises(ConfigError, match="train, dev, test"):
        mini.generate("mini/entail3", "validation")
