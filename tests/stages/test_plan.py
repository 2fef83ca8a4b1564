import math
from pathlib import Path

import numpy as np
import pytest

from mtl.config.load import load_config
from mtl.config.run import RunConfig
from mtl.data.planner import make_planner
from mtl.data.streams import TaskStream
from mtl.errors import ConfigError, DataError
from mtl.stages.plan import ModelPlan, plan_run
from mtl.tasks.registry import get

NAMES = ("mini/entail2", "mini/similarity", "mini/acceptability")
# The sizes of the generated tasks may change: what is expected is computed from them.
SMALL, MIDDLE, LARGE = ROWS = [get(name).splits["train"].official_rows or 0 for name in NAMES]


def config_of(*overrides: str) -> RunConfig:
    return load_config([], [f"tasks=[{','.join(NAMES)}]", "encoder.kind=scratch", *overrides])


def joint_of(*overrides: str) -> ModelPlan:
    """The joint model of three generated tasks, the first with the fewest rows."""
    return plan_run(config_of("stages=[joint]", *overrides)).stages[0].models[0]


def test_updates_are_the_epochs_over_all_rows() -> None:
    model = joint_of("training.epochs=2", "training.rows_per_update=32")
    assert model.updates == math.ceil(2 * sum(ROWS) / 32)
    assert joint_of("training.updates=7").updates == 7


def test_what_each_task_is_expected_to_get_adds_up() -> None:
    model = joint_of("training.updates=10", "sampling.temperature=2")
    examples = [task.expected_examples or 0 for task in model.tasks]
    assert sum(examples) == pytest.approx(320)
    assert [task.share for task in model.tasks] == pytest.approx(np.sqrt(ROWS) / np.sqrt(ROWS).sum())
    for task, expected in zip(model.tasks, examples, strict=True):
        assert task.expected_epochs == pytest.approx(expected / task.rows)


def test_a_cap_comes_before_the_root_and_is_shown() -> None:
    model = joint_of(f"sampling.cap={4 * SMALL}", "sampling.temperature=2")
    assert [task.counts_as for task in model.tasks] == [SMALL, 4 * SMALL, 4 * SMALL]
    assert [task.share for task in model.tasks] == pytest.approx([0.2, 0.4, 0.4])


def test_a_schedule_shows_both_ends_and_the_mean() -> None:
    model = joint_of("training.updates=50", "sampling.schedule={kind: linear, end: 0}")
    small = model.tasks[0]
    assert small.probability == pytest.approx(SMALL / sum(ROWS))
    assert small.probability_end == pytest.approx(1 / 3)
    assert small.probability < small.share < small.probability_end
    assert small.expected_examples == pytest.approx(small.share * 50 * 32)


def test_expected_examples_are_what_planned_updates_hold_on_average() -> None:
    overrides = ("training.updates=400", "training.rows_per_update=64", "sampling.schedule={kind: linear, end: 0}")
    model = joint_of(*overrides)
    rows = {task.task: task.rows for task in model.tasks}
    streams = [TaskStream(name, 1, np.arange(count), np.full(count, 9)) for name, count in rows.items()]
    counts = make_planner(config_of(*overrides), 1, streams, rows).cursors(400)
    assert [task.expected_examples for task in model.tasks] == pytest.approx(counts, rel=0.05)


def test_exact_epochs_take_every_row_once_an_epoch() -> None:
    model = joint_of("sampling.kind=exact_epoch", "training.epochs=2")
    assert [task.expected_examples for task in model.tasks] == pytest.approx([2 * rows for rows in ROWS])
    assert [task.expected_epochs for task in model.tasks] == pytest.approx([2, 2, 2])


def test_a_sampler_that_does_not_fit_the_updates_is_an_error_as_in_the_run() -> None:
    with pytest.raises(ConfigError, match="exact_epoch"):
        joint_of("sampling.kind=exact_epoch", "training.tasks_per_update=2")


@pytest.mark.parametrize("kind", ["uniform", "round_robin"])
def test_samplers_without_sizes(kind: str) -> None:
    model = joint_of(f"sampling.kind={kind}")
    assert [task.probability for task in model.tasks] == pytest.approx([1 / 3] * 3)
    assert [task.counts_as for task in model.tasks] == [None] * 3


def test_what_depends_on_lengths_is_unknown() -> None:
    model = joint_of("training.tokens_per_update=512")
    assert model.updates is None
    assert [task.expected_examples for task in model.tasks] == [None] * 3
    assert sum(task.share for task in model.tasks) == pytest.approx(1)
    assert joint_of("training.tokens_per_update=512", "training.updates=5").updates == 5


def test_single_and_fine_tuned_models_stand_alone_with_their_own_settings() -> None:
    plan = plan_run(config_of("task_overrides.mini/entail2.training.epochs=10", "finetune.training.epochs=1"))
    single, _, finetune = plan.stages
    assert [model.task for model in single.models] == list(plan.tasks)
    assert single.models[0].changes == {"training.epochs": 10.0}
    assert single.models[0].updates == math.ceil(10 * SMALL / 32)
    assert single.models[1].changes == {}
    assert finetune.models[1].updates == math.ceil(MIDDLE / 32)
    assert [task.share for model in single.models for task in model.tasks] == [1.0] * 3


def test_a_limit_and_a_holdout_leave_fewer_rows() -> None:
    rows = [task.rows for task in joint_of(f"data.max_train_rows={SMALL}", "selection.on=holdout").tasks]
    assert rows == [SMALL - SMALL // 10, SMALL, SMALL]
    stage = plan_run(config_of("stages=[joint]", "selection.on=holdout")).stages[0]
    assert any("holdout" in note for note in stage.notes)
    with pytest.raises(DataError, match="no row left"):
        joint_of("data.max_train_rows=0")


@pytest.mark.parametrize(
    ("choice", "joint", "finetune"),
    [("selected", 0, ""), ("last", 0, "last weights"), ("task_best", 1, "scores best for its task")],
)
def test_where_fine_tuning_starts_is_noted_unless_it_is_as_usual(choice: str, joint: int, finetune: str) -> None:
    before, after = plan_run(
        config_of("stages=[joint,finetune]", "joint.selection.on=dev", f"finetune_from={choice}")
    ).stages
    assert len(before.notes) == joint
    assert [finetune in note for note in after.notes] == [True] * bool(finetune)


def test_partial_data_are_noted_and_official_sizes_can_drive_the_shares(tmp_path: Path) -> None:
    for task, rows in {"RTE": 2, "WNLI": 3}.items():
        (tmp_path / "glue" / task).mkdir(parents=True)
        lines = ["index\tsentence1\tsentence2\tlabel", *(f"{row}\ta\tb\t0" for row in range(rows))]
        (tmp_path / "glue" / task / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    overrides = ["tasks=[glue/rte,glue/wnli]", "stages=[joint]", f"data.root={tmp_path}", "sampling.temperature=1"]
    plan = plan_run(load_config("glue", overrides))
    assert "glue/rte: train has 2 rows, the official release 2,490" in plan.notes
    assert "glue/wnli: dev is missing" in plan.notes
    assert plan.stages[0].models[0].tasks[0].probability == pytest.approx(2 / 5)
    official = plan_run(load_config("glue", [*overrides, "sampling.sizes=official"])).stages[0].models[0]
    assert official.tasks[0].probability == pytest.approx(2490 / (2490 + 635))
    assert [task.rows for task in official.tasks] == [2, 3]
    whole = plan_run(load_config("glue", overrides), official_sizes=True)
    assert whole.data_root is None
    assert [task.rows for task in whole.stages[0].models[0].tasks] == [2490, 635]


def test_missing_training_data_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"glue/CoLA/train.tsv"):
        plan_run(load_config("glue", [f"data.root={tmp_path}"]))


def test_a_plan_is_refused_as_the_run_would_be() -> None:
    with pytest.raises(ConfigError, match="joint comes before it"):
        plan_run(load_config("quickstart", ["stages=[finetune,joint]"]))
    with pytest.raises(ConfigError, match="names no task"):
        plan_run(load_config("quickstart", ["tasks=[mini,-mini]"]))


def test_exact_epochs_of_one_task_an_update_are_counted_as_they_are_run() -> None:
    overrides = ["sampling=exact_epoch", "training.tasks_per_update=1", "training.rows_per_update=16"]
    plan = plan_run(
        load_config("quickstart", [*overrides, "stages=[joint]", "training.epochs=1.5", "data.max_train_rows=60"])
    )
    (joint,) = plan.stages
    (model,) = joint.models
    # 6 tasks of 60 rows: 4 blocks a task and epoch, so 24 updates of 360 rows, then 12 blocks of the second epoch.
    assert model.updates == 36
    examples = sum(task.expected_examples or 0 for task in model.tasks)
    assert 360 + 12 * 12 <= round(examples, 6) <= 360 + 12 * 16
