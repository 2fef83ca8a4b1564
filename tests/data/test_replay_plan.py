"""Update plans that repeat what another run drew."""

from pathlib import Path

import numpy as np
import pytest
from planned_streams import SIZES, made_up_streams

from mtl.config.run import StageSettings
from mtl.config.sampling import ReplaySampling, TemperatureSampling
from mtl.config.training import TrainingSettings
from mtl.data.drawn_plan import DrawnPlanner
from mtl.data.planner import make_planner
from mtl.data.replay_plan import ReplayPlanner
from mtl.data.task_sequence import TaskSequence, read_sequence
from mtl.errors import ConfigError, DataError

TASKS = tuple(SIZES)


def stage(directory: Path | None = None, **training: object) -> StageSettings:
    asked = TrainingSettings.model_validate({"updates": 6, "rows_per_update": 32} | training)
    if directory is None:
        return StageSettings(sampling=TemperatureSampling(temperature=2.0), training=asked)
    return StageSettings(sampling=ReplaySampling.model_validate({"from": str(directory)}), training=asked)


def record(out: Path, counts: np.ndarray, *settings: str, tasks: tuple[str, ...] = TASKS) -> Path:
    """A directory of a run that drew ``counts`` in its joint stage, with settings of its own."""
    (out / "joint").mkdir(parents=True)
    lines = [f"tasks: [{', '.join(tasks)}]", *(settings or ["training: {updates: 6, rows_per_update: 32}"])]
    (out / "config.yaml").write_text("\n".join(lines))
    np.savez(out / "joint" / "sequence.npz", task_names=np.array(tasks), counts=counts, cursors=counts.sum(axis=0))
    return out


def drawn(updates: int = 6, **training: object) -> DrawnPlanner:
    planner = make_planner(stage(updates=updates, **training), 1, made_up_streams(), SIZES)
    assert isinstance(planner, DrawnPlanner)
    return planner


def counts_of(planner: DrawnPlanner | ReplayPlanner, total: int) -> np.ndarray:
    return np.stack([planner.plan(step).counts(len(TASKS)) for step in range(total)])


@pytest.mark.parametrize("training", [{}, {"tasks_per_update": 2}, {"rows_per_update": None, "tokens_per_update": 500}])
def test_plans_are_those_of_the_run_that_is_replayed(training: dict[str, object], tmp_path: Path) -> None:
    original = drawn(**training)
    size = "tokens_per_update: 500" if "tokens_per_update" in training else "rows_per_update: 32"
    run = record(tmp_path / "run", counts_of(original, 6), f"training: {{updates: 6, {size}}}")
    replayed = make_planner(stage(run, **training), 1, made_up_streams(), SIZES)
    assert isinstance(replayed, ReplayPlanner)
    assert replayed.total == 6
    for step in (3, 0, 5, 1, 2, 4):
        one, other = original.plan(step), replayed.plan(step)
        for name in ("tasks", "rows", "lengths"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert np.array_equal(original.cursors(step), replayed.cursors(step))
    shares = np.stack([replayed.probabilities(step) for step in range(6)])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert replayed.examples == counts_of(original, 6).sum()


def test_tasks_are_matched_by_name_and_a_shorter_training_takes_the_first_updates(tmp_path: Path) -> None:
    original = drawn(updates=9)
    order = [2, 0, 1]
    tasks = tuple(TASKS[number] for number in order)
    run = record(tmp_path / "run", counts_of(original, 9)[:, order], tasks=tasks)
    replayed = make_planner(stage(run, updates=4), 1, made_up_streams(), SIZES)
    assert isinstance(replayed, ReplayPlanner)
    assert replayed.total == 4
    assert np.array_equal(counts_of(replayed, 4), counts_of(original, 4))


def test_a_model_of_one_task_replays_nothing(tmp_path: Path) -> None:
    settings = stage(tmp_path / "nowhere")
    planner = make_planner(settings, 1, made_up_streams({"glue/rte": 40}), {"glue/rte": 40})
    assert planner.plan(0).counts(1).tolist() == [32]


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    counts = counts_of(drawn(), 6)
    run = record(tmp_path / "run", counts)

    def refused(directory: Path, error: type[Exception], match: str, **training: object) -> None:
        with pytest.raises(error, match=match):
            make_planner(stage(directory, **training), 1, made_up_streams(), SIZES)

    refused(run, ConfigError, r"has recorded 6 updates, and this run takes 7; set training\.updates=6", updates=7)
    refused(run, ConfigError, r"training\.rows_per_update 32, and this run 16", rows_per_update=16)
    tokens = {"rows_per_update": None, "tokens_per_update": 500}
    refused(run, ConfigError, r"training\.rows_per_update 32, and this run not set", **tokens)
    refused(tmp_path, DataError, "is no run directory")
    fewer = record(tmp_path / "fewer", counts[:, :2], tasks=TASKS[:2])
    refused(fewer, ConfigError, f"never from {TASKS[2]}, and besides from none")
    more = record(tmp_path / "more", np.pad(counts, ((0, 0), (0, 1))), tasks=(*TASKS, "glue/wnli"))
    refused(more, ConfigError, "never from none, and besides from glue/wnli")
    (run / "joint" / "sequence.npz").write_bytes(b"PK")
    refused(run, DataError, r"sequence\.npz is damaged")
    (run / "joint" / "sequence.npz").unlink()
    refused(run, DataError, "let that run finish")


def test_a_sequence_is_known_by_its_content(tmp_path: Path) -> None:
    counts = counts_of(drawn(), 6)
    sequence = read_sequence(record(tmp_path / "run", counts) / "joint" / "sequence.npz")
    turned = TaskSequence(TASKS[::-1], counts[:, ::-1])
    assert sequence.equals(turned)
    assert sequence.sha256 == turned.sha256
    others = [
        TaskSequence(TASKS, counts + np.eye(6, 3, dtype=np.int64)),
        TaskSequence(TASKS, counts[:5]),
        TaskSequence((*TASKS[:2], "glue/wnli"), counts),
    ]
    assert len({sequence.sha256, *(other.sha256 for other in others)}) == 4
    assert not any(sequence.equals(other) for other in others)
    assert sequence.examples("glue/rte") == counts[:, 0].sum()
