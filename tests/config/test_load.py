"""Configs from files, recipes and assignments, and what is said of wrong ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from mtl.config.load import load_config
from mtl.config.sampling import TemperatureSampling, UniformSampling
from mtl.errors import ConfigError

MINIMAL = ["tasks=[mini]"]


def _refused(*overrides: str) -> list[str]:
    """The lines of the error, without the heading."""
    with pytest.raises(ConfigError) as caught:
        load_config([], [*MINIMAL, *overrides])
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_layers_merge_left_to_right_and_overrides_come_last(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("seed: 2\noptimizer: {learning_rate: 3e-4, beta1: 0.8}\ntasks: [a, b]\n")
    (tmp_path / "b.yaml").write_text("optimizer: {learning_rate: 2E-4}\ntasks: [c]\n")
    config = load_config([tmp_path / "a.yaml", str(tmp_path / "b.yaml")], ["optimizer.beta1=.7"])
    assert (config.seed, config.tasks) == (2, ("c",))
    assert (config.optimizer.learning_rate, config.optimizer.beta1, config.optimizer.beta2) == (2e-4, 0.7, 0.999)


def test_text_is_read_by_the_type_of_its_field() -> None:
    config = load_config(
        [],
        ["tasks=[no,1]", "out=1e3", "logging.tensorboard=no", "training.tasks_per_update=4", "sampling.cap=5"],
    )
    assert config.tasks == ("no", "1")
    assert config.out == "1e3"
    assert config.logging.tensorboard is False
    assert config.training.tasks_per_update == 4
    assert isinstance(config.sampling, TemperatureSampling)
    assert config.sampling.cap == 5


def test_updates_on_the_command_line_replace_epochs_of_a_recipe() -> None:
    training = load_config("glue_minilm", ["training.updates=400"]).training
    assert (training.updates, training.epochs) == (400, None)
    training = load_config("glue", ["training.tokens_per_update=4096"]).training
    assert (training.tokens_per_update, training.rows_per_update) == (4096, None)
    assert _refused("training={epochs: 1, updates: 2}") == [
        "training: set exactly one of training.updates and training.epochs"
    ]


def test_shipped_components_are_sources() -> None:
    config = load_config(["glue", "suite/glue_without_wnli", "sampling/uniform"])
    assert config.tasks == ("glue", "-glue/wnli")
    assert config.sampling == UniformSampling()


def test_blocks_and_groups_in_them_can_be_unset() -> None:
    config = load_config("glue", ["joint=null", "finetune.optimizer=null", "task_overrides=null"])
    assert (config.joint, config.finetune, config.task_overrides) == ({}, {}, {})
    config = load_config([], [*MINIMAL, "task_overrides.a/b.head.dropout=0", "task_overrides.a/b=null"])
    assert config.task_overrides == {}


def test_an_unknown_recipe_names_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="Did you mean glue_minilm"):
        load_config("glue_minilmm")
    with pytest.raises(ConfigError, match=r"Known are base, .*sampling/pals"):
        load_config("zzzz")
    with pytest.raises(ConfigError, match="not a shipped recipe"):
        load_config("../configs/glue")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("tasks: [mini]\n")
    assert load_config("mine").tasks == ("mini",)


def test_all_wrong_keys_are_listed_at_once() -> None:
    assert _refused("training.updats=4", "seed=-1", "encoder.kind=bert", "selection.patience=2") == [
        "training.updats: unknown key; did you mean training.updates?",
        "selection: selection.patience needs selection.on: holdout (or dev)",
        "seed: must be greater than or equal to 0, not -1",
        "encoder: unknown kind bert; known are 'pretrained', 'scratch'",
    ]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("sampling.temprature=2", "sampling.temprature: unknown key; did you mean sampling.temperature?"),
        ("sampling.schedule={kind: linear, ende: 1}", "sampling.schedule.ende: unknown key; did you mean"),
        (
            "sampling={kind: uniform, cap: 1}",
            "sampling.cap: unknown key; it is of another kind than uniform, which has sizes",
        ),
        (
            "joint.sampling={kind: power, temperature: 1}",
            "joint.sampling.temperature: unknown key; it is of another kind",
        ),
        (
            "sampling.schedule.end=1",
            "sampling.schedule.end: unknown key; it is of another kind than constant, which has no",
        ),
        ("weight_decay=0", "weight_decay: unknown key; did you mean optimizer.weight_decay?"),
        ("zzz=0", "zzz: unknown key; known here are checkpoint, data,"),
        ("sampling.schedule=cos", "sampling.schedule: unknown kind cos; known are 'constant', 'linear', 'cosine'"),
        ("sampling=null", "sampling: "),
        ("tasks=glue", "tasks: must be a list; write [glue]"),
        ("training=3", "training: must be a mapping of keys"),
        ("stages=[joint,join]", "stages.1: must be 'single', 'joint' or 'finetune', not join"),
        ("stages=[joint,joint]", "config: stages names a stage twice"),
        ("data.max_train_rows={glue/rte: x}", "data.max_train_rows: must be a valid integer"),
        ("optimizer.learning_rate=null", "optimizer.learning_rate: must be a valid number, not null"),
        ("optimizer.learning_rate=nan", "optimizer.learning_rate: must be a finite number, not nan"),
        ("joint.training.updats=4", "joint.training.updats: unknown key; did you mean joint.training.updates?"),
        ("joint.seed=4", "joint.seed: unknown key"),
        ("joint=3", "joint: must be a mapping of keys, not 3"),
        ("task_overrides.a/b.training.epochs=x", "task_overrides.a/b.training.epochs: must be a valid number"),
        ("task_overrides.a/b.optimiser.beta1=0", "task_overrides.a/b.optimiser: unknown key; did you mean"),
        ("task_overrides.a/b=3", "task_overrides.a/b: must be a mapping of keys, not 3"),
    ],
)
def test_what_is_said_of_a_wrong_key(override: str, line: str) -> None:
    lines = _refused(override)
    assert any(found.startswith(line) for found in lines), lines


def test_a_config_needs_tasks() -> None:
    with pytest.raises(ConfigError, match=r"tasks: is not set; e\.g\. tasks=\[glue\]"):
        load_config([])


def test_config_imports_nothing_heavy() -> None:
    code = (
        "import sys; from mtl.config.load import load_config; load_config('glue'); "
        "print([m for m in ('torch', 'transformers', 'datasets', 'pandas', 'scipy', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
