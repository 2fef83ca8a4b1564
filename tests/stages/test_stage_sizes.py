import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.config.load import load_config
from mtl.config.resolve import resolve_stage
from mtl.data.subsets import Portion, nested_subset, split_holdout
from mtl.errors import ConfigError
from mtl.stages.sizes import most_dev_rows, sampler_sizes, train_portion, training_rows
from mtl.tasks.registry import get

PORTIONS = st.builds(Portion, rows=st.none() | st.integers(1, 40_000)) | st.builds(
    Portion, fraction=st.floats(0, 1, exclude_min=True)
)


@given(rows=st.integers(1, 30_000), portion=PORTIONS, holdout=st.booleans())
def test_rows_are_those_that_the_data_layer_leaves_when_no_text_repeats(
    rows: int, portion: Portion, holdout: bool
) -> None:
    kept = np.arange(rows)
    if holdout:
        kept = split_holdout("a/b", np.arange(rows, dtype=np.uint64)[:, np.newaxis])[0]
    expected = nested_subset("a/b", kept, portion.of(kept.size)).size
    assert training_rows(rows, portion=portion, holdout=holdout) == expected


def test_a_limit_holds_for_all_tasks_or_for_those_named() -> None:
    for key, told, wanted in (
        ("max_train_rows", lambda config, task: train_portion(config, task).rows, 9),
        ("fraction", lambda config, task: train_portion(config, task).fraction, 0.5),
        ("max_dev_rows", most_dev_rows, 9),
    ):
        assert told(load_config("glue", [f"data.{key}={wanted}"]), "glue/rte") == wanted
        named = load_config("glue", [f"data.{key}={{glue/rte: {wanted}}}"])
        assert told(named, "glue/rte") == wanted
        assert told(named, "glue/cola") is None
        assert told(load_config("glue"), "glue/rte") is None


def test_official_sizes_must_exist() -> None:
    settings = resolve_stage(load_config("glue", ["sampling.sizes=official"]), "joint", None)
    rte = get("glue/rte")
    assert sampler_sizes(settings, [rte], {"glue/rte": 5}) == {"glue/rte": 2490}
    train = rte.splits["train"].model_copy(update={"official_rows": None})
    unknown = rte.model_copy(update={"name": "my/task", "splits": {**rte.splits, "train": train}})
    with pytest.raises(ConfigError, match="my/task"):
        sampler_sizes(settings, [rte, unknown], {"glue/rte": 5, "my/task": 5})
    actual = resolve_stage(load_config("glue"), "joint", None)
    assert sampler_sizes(actual, [unknown], {"my/task": 5}) == {"my/task": 5}
