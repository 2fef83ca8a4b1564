"""A head's predictions as those of a task that is only evaluated."""

import numpy as np
import pytest

from mtl import tasks
from mtl.errors import ConfigError
from mtl.evaluation.label_map import apply_label_map
from mtl.tasks.spec import SplitSpec, TaskSpec

MNLI = tasks.get("glue/mnli")
PREDICTED = np.array([0, 1, 2, 1], dtype=np.int64)


def _evaluated(labels: tuple[str, ...], label_map: dict[str, str]) -> TaskSpec:
    return TaskSpec(
        name="mine/hans",
        kind="classification",
        directory="",
        text_columns=("a", "b"),
        label_column="label",
        labels=labels,
        metrics=("accuracy",),
        primary=("accuracy",),
        splits={"dev": SplitSpec(file="dev.tsv")},
        evaluate_only=True,
        scored_by="glue/mnli",
        label_map=label_map,
    )


def test_three_ways_become_two() -> None:
    hans = _evaluated(
        ("non-entailment", "entailment"), {"neutral": "non-entailment", "contradiction": "non-entailment"}
    )
    # Entailment is in neither map nor at the same place: it goes by its name.
    np.testing.assert_array_equal(apply_label_map(hans, MNLI, PREDICTED), [1, 0, 0, 0])


def test_equal_names_need_no_map() -> None:
    turned = _evaluated(("contradiction", "neutral", "entailment"), {})
    np.testing.assert_array_equal(apply_label_map(turned, MNLI, PREDICTED), [2, 1, 0, 1])
    np.testing.assert_array_equal(apply_label_map(tasks.get("glue/ax"), MNLI, PREDICTED), PREDICTED)


def test_a_label_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="contradiction of glue/mnli is none of its labels entailment, no;"):
        apply_label_map(_evaluated(("entailment", "no"), {"neutral": "no"}), MNLI, PREDICTED)


def test_a_label_that_the_head_does_not_have_is_refused() -> None:
    everything = {"neutral": "no", "contradiction": "no", "contradicts": "no"}
    with pytest.raises(ConfigError, match="label_map names contradicts; the labels of glue/mnli are entailment"):
        apply_label_map(_evaluated(("entailment", "no"), everything), MNLI, PREDICTED)


def test_scores_stay_and_kinds_do_not_mix() -> None:
    scores = np.array([0.5, 4.0], dtype=np.float32)
    stsb = tasks.get("glue/stsb")
    assert apply_label_map(stsb, stsb, scores) is scores
    with pytest.raises(ConfigError, match="is a classification, but glue/stsb"):
        apply_label_map(_evaluated(("a", "b"), {}), stsb, scores)
