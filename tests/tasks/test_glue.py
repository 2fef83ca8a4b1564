"""The GLUE table agrees with the official release and with the hub's label order."""

import pytest
from pydantic import ValidationError

from mtl.tasks import glue
from mtl.tasks.registry import expand, get
from mtl.tasks.spec import TaskSpec

# From the paper's table and the hub's data set card, not from the module under test.
_OFFICIAL_ROWS = {
    "glue/cola": (8551, 1043, 1063),
    "glue/sst2": (67349, 872, 1821),
    "glue/mrpc": (3668, 408, 1725),
    "glue/stsb": (5749, 1500, 1379),
    "glue/qqp": (363846, 40430, 390965),
    "glue/qnli": (104743, 5463, 5463),
    "glue/rte": (2490, 277, 3000),
    "glue/wnli": (635, 71, 146),
}
_HUB_LABELS = {
    "glue/cola": ("unacceptable", "acceptable"),
    "glue/sst2": ("negative", "positive"),
    "glue/mrpc": ("not_equivalent", "equivalent"),
    "glue/stsb": (),
    "glue/qqp": ("not_duplicate", "duplicate"),
    "glue/mnli": ("entailment", "neutral", "contradiction"),
    "glue/qnli": ("entailment", "not_entailment"),
    "glue/rte": ("entailment", "not_entailment"),
    "glue/wnli": ("not_entailment", "entailment"),
}


def test_nine_tasks_with_the_labels_of_the_hub() -> None:
    assert {spec.name: spec.labels for spec in glue.SPECS} == _HUB_LABELS


def test_official_row_counts() -> None:
    for spec in glue.SPECS:
        if spec.name != "glue/mnli":
            rows = tuple(spec.splits[split].official_rows for split in ("train", "dev", "test"))
            assert rows == _OFFICIAL_ROWS[spec.name], spec.name
    counts = {split: part.official_rows for split, part in glue.MNLI.splits.items()}
    assert counts == {
        "train": 392702,
        "dev_matched": 9815,
        "dev_mismatched": 9832,
        "test_matched": 9796,
        "test_mismatched": 9847,
    }


def test_primary_metrics() -> None:
    assert {spec.name.split("/")[1]: spec.primary for spec in glue.SPECS} == {
        "cola": ("matthews",),
        "sst2": ("accuracy",),
        "mrpc": ("accuracy", "f1"),
        "stsb": ("pearson", "spearman"),
        "qqp": ("accuracy", "f1"),
        "mnli": ("accuracy",),
        "qnli": ("accuracy",),
        "rte": ("accuracy",),
        "wnli": ("accuracy",),
    }


def test_only_wnli_stays_out_of_the_suite_score() -> None:
    assert [spec.name for spec in glue.SPECS if not spec.in_suite_score] == ["glue/wnli"]


def test_test_splits_are_unlabelled_and_all_others_labelled() -> None:
    for spec in glue.SPECS:
        for split, part in spec.splits.items():
            assert part.labelled != split.startswith("test"), (spec.name, split)


def test_the_diagnostic_set_is_chosen_by_its_name_only_and_read_by_the_head_of_mnli() -> None:
    assert glue.AX.name not in expand(["glue"])
    assert expand(["glue", "glue/ax"])[-1] == "glue/ax"
    assert get("glue/ax").scored_by == "glue/mnli"
    assert glue.AX.labels == glue.MNLI.labels
    assert {part.official_rows for part in glue.AX.splits.values()} == {1104}


def test_a_split_may_call_its_texts_otherwise() -> None:
    assert glue.AX.texts_of("dev") == ("Premise", "Hypothesis")
    assert glue.AX.texts_of("test") == ("sentence1", "sentence2")
    uneven = glue.AX.model_dump()
    uneven["splits"]["test"]["text_columns"] = ("sentence1",)
    with pytest.raises(ValidationError, match="another number of texts"):
        TaskSpec.model_validate(uneven)
