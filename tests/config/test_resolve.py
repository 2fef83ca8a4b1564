"""What holds for a stage and a task."""

from mtl.config.load import load_config
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.sampling import TemperatureSampling, UniformSampling

CONFIG = load_config(
    [],
    [
        "tasks=[mini]",
        "optimizer.learning_rate=1e-3",
        "optimizer.beta1=0.8",
        "sampling.temperature=2",
        "joint.sampling.cap=7",
        "single.sampling=uniform",
        "finetune.optimizer.learning_rate=1e-4",
        "finetune.training.updates=10",
        "finetune.head.dropout=0.3",
        "task_overrides.mini/a.optimizer.learning_rate=1e-5",
        "task_overrides.mini/a.training.epochs=2",
        "task_overrides.mini/a.head.pooling=mean",
    ],
)


def test_the_order_is_base_then_stage_then_task() -> None:
    rates = {
        (stage, task): resolve_stage(CONFIG, stage, task).optimizer.learning_rate
        for stage in ("single", "finetune")
        for task in (None, "mini/a", "mini/b")
    }
    assert rates == {
        ("single", None): 1e-3,
        ("single", "mini/a"): 1e-5,
        ("single", "mini/b"): 1e-3,
        ("finetune", None): 1e-4,
        ("finetune", "mini/a"): 1e-5,
        ("finetune", "mini/b"): 1e-4,
    }
    assert resolve_stage(CONFIG, "finetune", "mini/a").optimizer.beta1 == 0.8


def test_alternatives_and_kinds_are_replaced_by_blocks() -> None:
    assert resolve_stage(CONFIG, "finetune", "mini/b").training.updates == 10
    training = resolve_stage(CONFIG, "finetune", "mini/a").training
    assert (training.updates, training.epochs) == (None, 2)
    assert resolve_stage(CONFIG, "single", None).sampling == UniformSampling()
    assert resolve_stage(CONFIG, "joint", None).sampling == TemperatureSampling(temperature=2, cap=7)


def test_a_joint_stage_takes_nothing_but_the_head_of_a_task() -> None:
    assert resolve_stage(CONFIG, "joint", None).optimizer.learning_rate == 1e-3
    assert resolve_head(CONFIG, "joint", "mini/a").pooling == "mean"
    assert resolve_head(CONFIG, "joint", "mini/b").pooling == "first_dense"
    head = resolve_head(CONFIG, "finetune", "mini/a")
    assert (head.pooling, head.dropout) == ("mean", 0.3)
    assert head == resolve_stage(CONFIG, "finetune", "mini/a").head
