import pytest
from synthetic_results import a_result

from mtl.metrics import CONSTANT
from mtl.records import SplitRecord, TaskRecord
from mtl.studies.layout import lay_out
from mtl.studies.notes import flag_notes, is_partial, other_rows
from mtl.studies.table import arm_tables

RTE, WNLI, COLA = ("glue/rte", 70.0, 277, 277), ("glue/wnli", 56.0, 71, 71), ("glue/cola", 60.0, 1043, 1043)


def test_golden_text_of_three_stages_and_two_seeds() -> None:
    first = a_result(
        {
            "joint": (("glue/rte", 70.0, 277, 277), ("glue/cola", 58.0, 1000, 1043), WNLI),
            "single": (("glue/rte", 65.0, 277, 277), ("glue/cola", 60.0, 1000, 1043), WNLI),
        },
        partial=True,
        known=("SNLI", "QQP"),
    )
    second = a_result(
        {
            "single": (("glue/rte", 66.0, 277, 277), ("glue/cola", 61.0, 1000, 1043), WNLI),
            "joint": (("glue/rte", 72.0, 277, 277), ("glue/cola", 58.5, 1000, 1043), WNLI),
            "finetune": (("glue/rte", 73.04, 277, 277),),
        },
        seed=2,
        status="stopped",
        partial=True,
        known=("SNLI", "QQP"),
    )
    assert lay_out(arm_tables([second, first]), "text") == (
        "arm aaaaaaaaaaaa\n"
        "task        score                                     single       joint  joint + fine-tuned\n"
        "glue/cola*  matthews                              60.5 ± 0.7  58.2 ± 0.4                   -\n"
        "glue/rte    accuracy                              65.5 ± 0.7  71.0 ± 1.4          73.0 (n=1)\n"
        "glue/wnli   accuracy                              56.0 ± 0.0  56.0 ± 0.0                   -\n"
        "glue        mean of glue/cola, glue/rte           63.0 ± 0.7  64.6 ± 0.9                   -\n"
        "glue        mean of glue/cola, glue/rte and WNLI  60.7 ± 0.5  61.8 ± 0.6                   -\n"
        "glue        mean of glue/rte                               -           -          73.0 (n=1)\n"
        "\n"
        "seed 1, 2 (n = 2); mean ± sample standard deviation over seeds\n"
        "the run of seed 2 is not complete: stopped\n"
        "single: the last weights; looks: 0\n"
        "joint: the last weights; looks: 0\n"
        "finetune: the last weights; looks: 0\n"
        "* glue/cola dev: 1,000 rows, the official release has 1,043\n"
        "trained or scored on other rows than the official release's: not comparable to published scores\n"
        "encoder: some/encoder, known to have been trained on SNLI; QQP\n"
    )


def test_means_over_different_tasks_never_share_a_row() -> None:
    table = arm_tables([a_result({"joint": (RTE, COLA)}), a_result({"joint": (RTE,)}, seed=2)])[0]
    suites = [row for row in table.rows if row.name == "glue"]
    assert [row.score for row in suites] == ["mean of glue/cola, glue/rte", "mean of glue/rte"]
    assert [row.cells[0].values for row in suites if row.cells[0]] == [(65.0,), (70.0,)]


def test_the_suite_score_leaves_out_wnli_and_the_other_is_shown() -> None:
    table = arm_tables([a_result({"joint": (RTE, COLA, WNLI)})])[0]
    shown = {row.score: row.cells[0].mean for row in table.rows if row.name == "glue" and row.cells[0]}
    assert shown == {"mean of 2": 65.0, "mean of 2 and WNLI": 62.0}


def test_a_suite_of_wnli_alone_has_no_score() -> None:
    table = arm_tables([a_result({"joint": (WNLI,)})])[0]
    assert [row.score for row in table.rows] == ["accuracy", "mean of 0 and WNLI"]


def test_tasks_come_in_the_order_of_their_suite_and_unknown_ones_last() -> None:
    table = arm_tables([a_result({"joint": (("my/task", 1.0, 5, None), RTE, COLA)})])[0]
    tasks = [(row.name, row.score) for row in table.rows if "/" in row.name]
    assert tasks == [("glue/cola", "matthews"), ("glue/rte", "accuracy"), ("my/task", "primary")]


def test_a_mean_of_metrics_or_splits_says_so() -> None:
    tasks = (("glue/mnli", 80.0, 9815, 9815), ("glue/stsb", 80.0, 1500, 1500))
    table = arm_tables([a_result({"joint": tasks})])[0]
    shown = {row.name: row.score for row in table.rows}
    assert shown["glue/mnli"] == "accuracy over dev_matched, dev_mismatched"
    assert shown["glue/stsb"] == "mean of pearson, spearman"


def test_the_deviation_is_of_a_sample() -> None:
    runs = [a_result({"joint": (("glue/rte", score, 277, 277),)}, seed=int(score)) for score in (1.0, 2.0, 3.0, 6.0)]
    cell = arm_tables(runs)[0].rows[0].cells[0]
    assert cell is not None
    assert cell.mean == 3.0
    assert cell.deviation == pytest.approx((14 / 3) ** 0.5)
    single = arm_tables(runs[:1])[0].rows[0].cells[0]
    assert single is not None
    assert single.deviation is None


def test_arms_stay_apart() -> None:
    tables = arm_tables(
        [
            a_result({"joint": (RTE,)}, arm="b" * 64),
            a_result({"single": (COLA,)}),
            a_result({"joint": (RTE,)}, seed=2, arm="b" * 64),
        ]
    )
    assert [(table.arm_hash[0], table.seeds, table.stages) for table in tables] == [
        ("b", (1, 2), ("joint",)),
        ("a", (1,), ("single",)),
    ]


def test_notes_tell_what_limits_the_numbers() -> None:
    result = a_result(
        {"joint": (("glue/rte", 70.0, 100, 277),)},
        partial=True,
        status="failed",
        selected_on="dev",
        looks=5,
        flags=("constant prediction",),
    )
    notes = "\n".join(arm_tables([result])[0].notes)
    for told in (
        "seed 1 (n = 1)",
        "not complete: failed",
        "selected on dev, so that scores on it are too high; looks: 5",
        "* glue/rte dev: 100 rows, the official release has 277",
        "not comparable to published scores",
        "some/encoder, no known training data recorded",
        "glue/rte dev: constant prediction, seed 1",
    ):
        assert told in notes


def test_a_mark_of_the_scoring_is_told_once_with_all_its_seeds() -> None:
    runs = [a_result({"single": (RTE,), "joint": (RTE,)}, seed=seed, flags=(CONSTANT,)) for seed in (1, 2)]
    assert arm_tables(runs)[0].notes[-2:] == (
        "single, glue/rte dev: all predictions, or all labels, are the same, seed 1, 2",
        "joint, glue/rte dev: all predictions, or all labels, are the same, seed 1, 2",
    )


def test_a_mark_of_a_fold_names_the_fold() -> None:
    runs = [a_result({"joint": (RTE,)}, flags=(CONSTANT,)).model_copy(update={"fold": fold}) for fold in (0, 2)]
    told = "glue/rte dev: all predictions, or all labels, are the same, seed 1 fold 0, 1 fold 2"
    assert flag_notes(runs, ["joint"]) == [told]


def test_a_whole_run_has_no_warnings() -> None:
    assert arm_tables([a_result({"joint": (RTE,)}, known=("SNLI",))])[0].notes == (
        "seed 1 (n = 1); one run, so no spread",
        "joint: the last weights; looks: 0",
        "encoder: some/encoder, known to have been trained on SNLI",
    )


def test_markdown() -> None:
    text = lay_out(arm_tables([a_result({"joint": (("glue/rte", 70.0, 100, 277),)})]), "md")
    assert text.splitlines()[:6] == [
        "Arm `aaaaaaaaaaaa`",
        "",
        "| task | score | joint |",
        "| :-- | :-- | --: |",
        "| glue/rte\\* | accuracy | 70.0 |",
        "| glue | mean of 1 | 70.0 |",
    ]
    assert "- \\* glue/rte dev: 100 rows" in text


def test_csv_has_twelve_digits_and_a_line_for_each_stage() -> None:
    third = 200 / 3
    runs = [
        a_result({"single": (("glue/rte", third, 277, 277),), "joint": (RTE,)}),
        a_result({"single": (("glue/rte", third + 1, 277, 277),)}, seed=2),
    ]
    lines = lay_out(arm_tables(runs), "csv").splitlines()
    assert lines[0] == "arm,task,score,partial,stage,mean,deviation,n"
    assert lines[1].startswith(f"{'a' * 64},glue/rte,accuracy,0,single,67.1666666667,0.707106781187,2")
    assert lines[2] == f"{'a' * 64},glue/rte,accuracy,0,joint,70,,1"


def test_a_task_trained_on_part_of_its_rows_is_marked() -> None:
    split = SplitRecord(metrics={"accuracy": 65.7}, rows=5463, rows_official=5463, rows_sha256="")
    task = TaskRecord(
        primary=65.7,
        selected_on="last",
        looks=1,
        selected_step=9,
        train_rows=12259,
        train_rows_official=104743,
        splits={"dev": split},
    )
    assert other_rows(task) == [("train", 12259, 104743)]
    assert is_partial(task)
    whole = task.model_copy(update={"train_rows": 104743})
    assert other_rows(whole) == []
    assert not is_partial(whole)
    assert is_partial(whole.model_copy(update={"labels_shuffled": True}))
    own = split.model_copy(update={"rows": 40, "rows_official": None})
    assert not is_partial(whole.model_copy(update={"splits": {"dev": own}}))
    assert is_partial(whole.model_copy(update={"splits": {"dev": own.model_copy(update={"rows_at_hand": 90})}}))
