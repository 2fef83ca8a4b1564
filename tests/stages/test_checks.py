"""Configs that cannot be carried out are refused before anything is read or written."""

from pathlib import Path

import pytest

from mtl.cli import main
from mtl.config.load import load_config
from mtl.errors import ConfigError
from mtl.stages.checks import check_config
from mtl.tasks.registry import expand

BASE = [
    "tasks=[mini/entail2,mini/similarity]",
    "encoder.kind=scratch",
    "encoder.tokenizer=mini",
    "encoder.positions=64",
    "data.max_length=64",
]

FAULTS = {
    "finetune without joint": (["stages=[finetune]"], "joint comes before it"),
    "finetune before joint": (["stages=[finetune,joint]"], "joint comes before it"),
    "finetune after single only": (["stages=[single,finetune]"], "joint comes before it"),
    "override of a task that is not trained": (["task_overrides={mini/entail3: {head: {dropout: 0}}}"], "mini/entail3"),
    "joint override beyond the head": (
        ["stages=[joint]", "task_overrides={mini/entail2: {optimizer: {learning_rate: 1e-3}}}"],
        "only a task's head applies",
    ),
    "limit of a task that is not trained": (["data.max_train_rows={mini/answerable: 5}"], "mini/answerable"),
    "a share of a task that is not trained": (["data.fraction={mini/answerable: 0.5}"], "data.fraction names"),
    "scored rows of a task that is not trained": (
        ["data.max_dev_rows={mini/answerable: 5}"],
        "data.max_dev_rows names",
    ),
    "labels of a task that is not trained": (["data.shuffled_labels=[mini/answerable]"], "data.shuffled_labels names"),
    "labels of a suite": (["data.shuffled_labels=[mini]"], "names mini, .* it trains mini/entail2, mini/similarity"),
    "rows cut in two ways": (
        ["data.max_train_rows=5", "data.fraction={mini/similarity: 0.5}"],
        "both cut the training rows of mini/similarity",
    ),
    "a joint stage after models of each task": (
        ["init.from=elsewhere", "init.stage=single", "stages=[joint,finetune]"],
        "take joint out of stages",
    ),
    "too few positions": (["data.max_length=65"], r"encoder\.positions only 64"),
    "tasks that cancel out": (["tasks=[mini,-mini]"], "names no task"),
    "a holdout that was trained on": (["finetune.selection.on=holdout"], "joint stage is trained on"),
    "the best snapshot for a task where none is scored": (
        ["finetune_from=task_best", "finetune.selection.on=dev"],
        r"joint\.selection\.on is last.* set joint\.selection\.on=holdout",
    ),
    "snapshots by task of a joint stage that scores none": (
        ["stages=[joint]", "finetune_from=task_best"],
        r"joint\.selection\.on is last",
    ),
    "a choice of snapshots of a stage that does not run": (
        ["stages=[finetune]", "init.from=elsewhere", "finetune_from=last"],
        r"\['finetune'\] have none",
    ),
    "another number of threads in one stage": (["joint.training.threads=7"], "a run has one"),
    "another device for one task": (
        ["task_overrides={mini/entail2: {training: {device: cuda}}}", "training.device=cpu"],
        "a run has one",
    ),
    "another head in fine-tuning": (["finetune.head.pooling=mean"], "set head alike"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_config_errors(fault: str) -> None:
    overrides, message = FAULTS[fault]
    config = load_config([], [*BASE, *overrides])
    with pytest.raises(ConfigError, match=message):
        check_config(config, expand(config.tasks))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_command_line_answers_with_2_and_writes_nothing(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *BASE, f"out={tmp_path / 'run'}", *FAULTS[fault][0]]) == 2
    assert capsys.readouterr().err.startswith("mtl run: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "overrides",
    [
        ["stages=[joint,finetune]", "task_overrides={mini/entail2: {training: {rows_per_update: 4}}}"],
        ["stages=[joint]", "task_overrides={mini/entail2: {head: {pooling: mean}}}"],
        ["stages=[joint,finetune]", "task_overrides={mini/entail2: {head: {pooling: mean}}}"],
        ["stages=[joint]", "finetune.head.pooling=mean"],
        ["data.max_train_rows={mini/entail2: 5}", "data.max_length=64"],
        ["data.max_train_rows={mini/entail2: 5}", "data.fraction={mini/similarity: 0.5}", "data.max_dev_rows=3"],
        ["data.shuffled_labels=[mini/similarity]"],
        ["init.from=elsewhere", "init.stage=single", "stages=[single,finetune]"],
        ["training.precision=bf16", "joint.training.updates=7"],
        ["finetune_from=task_best", "joint.selection.on=dev"],
        ["finetune_from=task_best", "selection.on=holdout"],
        ["finetune_from=last"],
        ["stages=[single]", "finetune_from=task_best"],
    ],
)
def test_what_can_be_carried_out_is_let_through(overrides: list[str]) -> None:
    config = load_config([], [*BASE, *overrides])
    check_config(config, expand(config.tasks))
