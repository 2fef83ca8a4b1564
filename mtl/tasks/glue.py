"""The nine GLUE tasks and their diagnostic set as data: files, labels, metrics and row counts of the official release.

Label names and their order are those of the hub copy (``nyu-mll/glue``), so that a checkpoint trained on either agrees.
The leaderboard's score leaves no task out; ours leaves out WNLI, as most papers since BERT do, and shows both.
QNLI is the second release (the first has 108,436 training rows and other test ids).

Paper: Wang et al. 2019, "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language Understanding".
"""

from mtl.tasks.spec import SplitSpec, TaskSpec

_HUB = "nyu-mll/glue"


def _splits(train: int, dev: int, test: int) -> dict[str, SplitSpec]:
    """The usual three files, with the row counts of the official release."""
    return {
        "train": SplitSpec(file="train.tsv", hub="train", official_rows=train),
        "dev": SplitSpec(file="dev.tsv", hub="validation", official_rows=dev),
        "test": SplitSpec(file="test.tsv", hub="test", official_rows=test, labelled=False),
    }


# CoLA is the only task whose labelled files have no header line.
_COLA_COLUMNS = ("source", "label", "star", "sentence")

COLA = TaskSpec(
    name="glue/cola",
    kind="classification",
    directory="CoLA",
    text_columns=("sentence",),
    label_column="label",
    labels=("unacceptable", "acceptable"),
    label_values={"0": "unacceptable", "1": "acceptable"},
    metrics=("matthews", "accuracy"),
    primary=("matthews",),
    splits={
        "train": SplitSpec(file="train.tsv", hub="train", official_rows=8551, columns=_COLA_COLUMNS),
        "dev": SplitSpec(file="dev.tsv", hub="validation", official_rows=1043, columns=_COLA_COLUMNS),
        "test": SplitSpec(file="test.tsv", hub="test", official_rows=1063, labelled=False),
    },
    hub=(_HUB, "cola"),
)

SST2 = TaskSpec(
    name="glue/sst2",
    kind="classification",
    directory="SST-2",
    text_columns=("sentence",),
    label_column="label",
    labels=("negative", "positive"),
    label_values={"0": "negative", "1": "positive"},
    metrics=("accuracy",),
    primary=("accuracy",),
    splits=_splits(67_349, 872, 1821),
    hub=(_HUB, "sst2"),
)

MRPC = TaskSpec(
    name="glue/mrpc",
    kind="classification",
    directory="MRPC",
    text_columns=("#1 String", "#2 String"),
    label_column="Quality",
    labels=("not_equivalent", "equivalent"),
    label_values={"0": "not_equivalent", "1": "equivalent"},
    positive_label="equivalent",
    metrics=("accuracy", "f1"),
    primary=("accuracy", "f1"),
    splits=_splits(3668, 408, 1725),
    hub=(_HUB, "mrpc"),
    hub_columns={"#1 String": "sentence1", "#2 String": "sentence2", "Quality": "label"},
)

STSB = TaskSpec(
    name="glue/stsb",
    kind="regression",
    directory="STS-B",
    text_columns=("sentence1", "sentence2"),
    label_column="score",
    score_range=(0.0, 5.0),
    metrics=("pearson", "spearman"),
    primary=("pearson", "spearman"),
    splits=_splits(5749, 1500, 1379),
    hub=(_HUB, "stsb"),
    hub_columns={"score": "label"},
)

QQP = TaskSpec(
    name="glue/qqp",
    kind="classification",
    directory="QQP",
    text_columns=("question1", "question2"),
    label_column="is_duplicate",
    labels=("not_duplicate", "duplicate"),
    label_values={"0": "not_duplicate", "1": "duplicate"},
    positive_label="duplicate",
    metrics=("accuracy", "f1"),
    primary=("accuracy", "f1"),
    splits=_splits(363_846, 40_430, 390_965),
    hub=(_HUB, "qqp"),
    hub_columns={"is_duplicate": "label"},
)

MNLI = TaskSpec(
    name="glue/mnli",
    kind="classification",
    directory="MNLI",
    text_columns=("sentence1", "sentence2"),
    label_column="gold_label",
    labels=("entailment", "neutral", "contradiction"),
    metrics=("accuracy",),
    primary=("accuracy",),
    splits={
        "train": SplitSpec(file="train.tsv", hub="train", official_rows=392_702),
        "dev_matched": SplitSpec(file="dev_matched.tsv", hub="validation_matched", official_rows=9815),
        "dev_mismatched": SplitSpec(file="dev_mismatched.tsv", hub="validation_mismatched", official_rows=9832),
        "test_matched": SplitSpec(file="test_matched.tsv", hub="test_matched", official_rows=9796, labelled=False),
        "test_mismatched": SplitSpec(
            file="test_mismatched.tsv", hub="test_mismatched", official_rows=9847, labelled=False
        ),
    },
    dev_splits=("dev_matched", "dev_mismatched"),
    hub=(_HUB, "mnli"),
    hub_columns={"sentence1": "premise", "sentence2": "hypothesis", "gold_label": "label"},
)

QNLI = TaskSpec(
    name="glue/qnli",
    kind="classification",
    directory="QNLI",
    text_columns=("question", "sentence"),
    label_column="label",
    labels=("entailment", "not_entailment"),
    metrics=("accuracy",),
    primary=("accuracy",),
    splits=_splits(104_743, 5463, 5463),
    hub=(_HUB, "qnli"),
)

RTE = TaskSpec(
    name="glue/rte",
    kind="classification",
    directory="RTE",
    text_columns=("sentence1", "sentence2"),
    label_column="label",
    labels=("entailment", "not_entailment"),
    metrics=("accuracy",),
    primary=("accuracy",),
    splits=_splits(2490, 277, 3000),
    hub=(_HUB, "rte"),
)

WNLI = TaskSpec(
    name="glue/wnli",
    kind="classification",
    directory="WNLI",
    text_columns=("sentence1", "sentence2"),
    label_column="label",
    labels=("not_entailment", "entailment"),
    label_values={"0": "not_entailment", "1": "entailment"},
    metrics=("accuracy",),
    primary=("accuracy",),
    splits=_splits(635, 71, 146),
    in_suite_score=False,
    hub=(_HUB, "wnli"),
)

SPECS: tuple[TaskSpec, ...] = (COLA, SST2, MRPC, STSB, QQP, MNLI, QNLI, RTE, WNLI)

# Written by experts to show what a model of MNLI knows; the labelled file is published, and no row is for training.
AX = TaskSpec(
    name="glue/ax",
    kind="classification",
    directory="AX",
    text_columns=("Premise", "Hypothesis"),
    label_column="Label",
    labels=("entailment", "neutral", "contradiction"),
    metrics=("r3", "accuracy"),
    primary=("r3",),
    splits={
        "dev": SplitSpec(file="diagnostic-full.tsv", official_rows=1104),
        "test": SplitSpec(
            file="diagnostic.tsv",
            hub="test",
            official_rows=1104,
            labelled=False,
            text_columns=("sentence1", "sentence2"),
        ),
    },
    in_suite_score=False,
    evaluate_only=True,
    scored_by="glue/mnli",
    tag_columns=("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge"),
    hub=(_HUB, "ax"),
    hub_columns={"sentence1": "premise", "sentence2": "hypothesis"},
)

DIAGNOSTICS: tuple[TaskSpec, ...] = (AX,)
