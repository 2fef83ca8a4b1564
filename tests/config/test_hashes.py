"""Which settings make a run another run: walks every field of every settings type."""

import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from mtl.config.hashes import arm_hash, difference, identity, run_hash
from mtl.config.kinds import OneOf
from mtl.config.load import load_config
from mtl.config.run import RunConfig, StageSettings
from mtl.config.settings import Settings, keys_of

MINIMAL = ("tasks=[mini]",)
TASKS = ("mini/a", "mini/b")
# Values that no rule for a type's other values finds, and what has to be set for a value to be valid.
OTHER = {"stages": "[joint]", "tasks": "[mini,-mini/a]", "data.fraction": "{mini/a: 0.5}"}
NEEDS = {
    "selection.patience": ["selection.on=holdout"],
    "init.stage": ["init.stage=finetune", "init.task=mini/a"],
    "splits.fold": ["splits.kfold=10"],
    "init.task": ["init.stage=finetune", "init.task=mini/a"],
}


def _hash(*overrides: str) -> str:
    config = load_config([], [*MINIMAL, *overrides])
    return arm_hash(config, tasks=TASKS, data_fingerprints={"mini/a": "1"}, encoder_hash="e")


def _fields(settings: type[Settings], *parents: str, execution: bool = False) -> Iterator[tuple[str, FieldInfo, bool]]:
    for name, field in keys_of(settings).items():
        if name == "kind" or (settings is RunConfig and name in ("single", "joint", "finetune", "task_overrides")):
            continue
        mark = field.json_schema_extra
        is_execution = execution or (isinstance(mark, Mapping) and bool(mark.get("execution")))
        value = field.default
        if isinstance(value, Settings):
            yield from _fields(type(value), *parents, name, execution=is_execution)
        else:
            yield ".".join((*parents, name)), field, is_execution


def _all_fields() -> list[tuple[str, str, FieldInfo, bool]]:
    """(override that makes the kind, path, field, is it execution) for each field, those of all kinds included."""
    found = [("seed=1", *entry) for entry in _fields(RunConfig)]
    for name, field in RunConfig.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, OneOf):
                for kind, settings in mark.registry.items():
                    found += [(f"{name}={kind}", *entry) for entry in _fields(settings, name)]
    return found


def _another(path: str, field: FieldInfo) -> str:
    """A valid value, as text, that is not the field's default."""
    if path in OTHER:
        return OTHER[path]
    default, text = field.default, str(field.annotation)
    literals = [value for value in _literals(field.annotation) if value != default]
    if literals:
        return str(literals[0])
    if isinstance(default, bool):
        return "false" if default else "true"
    if "dict[" in text:
        return "{mini/a: 3}"
    if "tuple[" in text:
        return "[some]"
    if isinstance(default, int):
        return str(default + 8)
    if isinstance(default, float):
        return "0.25" if default != 0.25 else "0.5"
    return "9" if "int" in text else "0.25" if "float" in text else "other"


def _literals(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
    for part in typing.get_args(annotation):
        yield from _literals(part)


def test_a_setting_changes_the_hash_just_when_it_is_identity() -> None:
    fields = _all_fields()
    assert len(fields) > 60
    for kind, path, field, is_execution in fields:
        needs = NEEDS.get(path, [])
        value = _another(path, field)
        before, after = _hash(kind, *needs), _hash(kind, *needs, f"{path}={value}")
        # Seed and fold are the run's; names stand for the patterns.
        leaves_it = is_execution or path in ("seed", "splits.fold", "tasks")
        assert (before == after) is leaves_it, f"{kind} {path}={value}"


def test_what_is_execution_is_what_was_meant_to_be() -> None:
    assert {path for _, path, _, is_execution in _all_fields() if is_execution} == {
        "out",
        "init.from",
        "sampling.from",
        "data.root",
        "data.cache",
        "training.tokens_per_micro_batch",
        "training.device",
        "training.allocator",
        "training.devices",
        "training.kernels",
        "training.threads",
        "logging.every",
        "logging.tensorboard",
        "checkpoint.every",
        "checkpoint.keep",
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["training.epochs=3"], ["training.epochs=3.0"]),
        (["sampling=uniform"], ["sampling={kind: uniform}"]),
        ([], ["joint.optimizer.beta1=0.9"]),
        (["stages=[joint]", "optimizer.beta1=0.5"], ["stages=[joint]", "joint.optimizer.beta1=0.5"]),
        (["stages=[joint]"], ["stages=[joint]", "finetune.optimizer.beta1=0.5"]),
        (["stages=[single]"], ["stages=[single]", "task_overrides.mini/c.optimizer.beta1=0.5"]),
        (["head.dropout=0"], ["task_overrides.mini/a.head.dropout=0", "task_overrides.mini/b.head.dropout=0"]),
        (["joint.training.threads=1"], ["task_overrides.mini/a.training.device=cpu"]),
    ],
)
def test_spelling_does_not_matter(one: list[str], other: list[str]) -> None:
    assert _hash(*one) == _hash(*other)


@pytest.mark.parametrize(
    "override",
    [
        "joint.optimizer.beta1=0.5",
        "finetune.training.updates=5",
        "task_overrides.mini/a.training.updates=5",
        "stages=[joint]",
    ],
)
def test_blocks_and_overrides_are_identity(override: str) -> None:
    assert _hash() != _hash(override)


def test_a_head_of_one_task_is_identity_of_a_joint_run() -> None:
    assert _hash("stages=[joint]") != _hash("stages=[joint]", "task_overrides.mini/a.head.dropout=0")
    assert _hash("stages=[joint]") == _hash("stages=[joint]", "task_overrides.mini/a.optimizer.beta1=0.5")


def test_tasks_data_encoder_and_seed_are_part_of_the_hashes() -> None:
    config = load_config([], MINIMAL)
    given: dict[str, Any] = {"tasks": TASKS, "data_fingerprints": {"mini/a": "1"}, "encoder_hash": "e"}
    arms = {
        arm_hash(config, **given),
        arm_hash(config, **{**given, "tasks": TASKS[:1]}),
        arm_hash(config, **{**given, "data_fingerprints": {"mini/a": "2"}}),
        arm_hash(config, **{**given, "encoder_hash": "f"}),
    }
    assert len(arms) == 4
    assert len({run_hash(arm, seed, fold) for arm in arms for seed in (1, 2) for fold in (None, 0, 1)}) == 24
    assert all(len(arm) == 64 for arm in arms)


def test_identity_is_plain_json() -> None:
    document = identity(load_config("glue", ["task_overrides.glue/rte.training.updates=5"]), ["glue/rte"])
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["resolved"]["single"]["glue/rte"]["training"]["updates"] == 5
    assert not set(document) & set(StageSettings.model_fields)


def test_settings_that_came_later_leave_older_runs_what_they_were() -> None:
    document = identity(load_config([], MINIMAL))
    assert document["data"] == {"max_length": 128, "max_train_rows": None}
    later = load_config([], [*MINIMAL, "data.fraction=1", "data.shuffled_labels=[mini/a]"])
    assert difference(load_config([], MINIMAL), later) == [
        "data.fraction: not set -> 1.0",
        'data.shuffled_labels: not set -> ["mini/a"]',
    ]


def test_difference_names_what_changed() -> None:
    before = load_config([], [*MINIMAL, "training.updates=400"])
    after = load_config(
        [],
        [
            *MINIMAL,
            "training.updates=500",
            "data.max_length=64",
            "sampling=uniform",
            "joint.optimizer.decay=cosine",
            "task_overrides.mini/a.head.dropout=0",
            "out=elsewhere",
            "training.threads=3",
        ],
    )
    assert difference(before, after) == [
        "data.max_length: 128 -> 64",
        "sampling.kind: temperature -> uniform",
        "sampling.temperature: 1.0 -> not set",
        "sampling.cap: null -> not set",
        'sampling.schedule: {"kind": "constant"} -> not set',
        "training.updates: 400 -> 500",
        "joint.optimizer.decay: linear -> cosine",
        "task_overrides.mini/a.head.dropout: 0.1 -> 0.0",
    ]
    assert difference(before, before) == []
