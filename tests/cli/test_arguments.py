import pytest

from mtl.cli.arguments import split_settings


@pytest.mark.parametrize(
    "word",
    [
        "seed=1",
        "training.updates=400",
        "tasks=[glue,-glue/wnli]",
        "task_overrides.glue/rte.training.epochs=10",
        'task_overrides."my.suite/task".training.updates=5',
        "encoder.path=a=b",
    ],
)
def test_assignments_are_told_apart(word: str) -> None:
    assert split_settings([word]) == ([], [word])


@pytest.mark.parametrize("word", ["glue", "sampling/t5", "my.yaml", "runs/a=b.yaml", "./seed=1.yaml", "=1"])
def test_all_else_is_a_config(word: str) -> None:
    assert split_settings([word]) == ([word], [])


def test_both_keep_their_order() -> None:
    assert split_settings(["seed=1", "b", "out=x", "a"]) == (["b", "a"], ["seed=1", "out=x"])
