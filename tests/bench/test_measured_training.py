"""A training under the clock: what is counted, what lies under the clock, and the trial before it."""

import numpy as np
import pytest
import torch
from tiny_bench import ACCEPTABILITY, ENTAIL, SIMILARITY, counting_clock, tiny_start

from mtl.bench.profile import largest_first
from mtl.bench.start import describe_start
from mtl.bench.train import mean_over_rows, measure_training
from mtl.bench.trial import TRIAL_UPDATES, run_trial
from mtl.stages.build import build_parts, plan_updates
from mtl.training.flops import FlopCounter
from mtl.training.update import Updater

TASKS = (ENTAIL, SIMILARITY, ACCEPTABILITY)


def test_rows_tokens_and_operations_are_those_of_the_timed_updates() -> None:
    start = tiny_start(7, tasks=TASKS)
    found = measure_training(start, 2, 0.0, clock=counting_clock(), peak=lambda: 5.0)
    planner, _ = plan_updates(start.context, start.unit.tasks, start.unit.settings)
    plans = [planner.plan(step) for step in range(2, 7)]
    lengths = [
        int(start.context.data[TASKS[task]].train.lengths()[row])
        for plan in plans
        for task, row in zip(plan.tasks, plan.rows, strict=True)
    ]
    assert (found.updates, found.rows) == (5, 40)
    assert found.tokens == found.padded_tokens == sum(lengths)
    parts = build_parts(start.context, start.unit)
    counter = FlopCounter.of(parts.model)
    works = [parts.preparation.prepare(planner, step).work for step in range(2, 7)]
    assert found.flops == pytest.approx(sum(map(counter.training, works)))


def test_the_clock_runs_from_the_end_of_the_warm_up_to_the_last_update() -> None:
    # Read after the first update, after the second, which is the last of the warm-up, and after the last.
    found = measure_training(tiny_start(7), 2, -3.0, clock=counting_clock(10.0), peak=lambda: 5.0)
    assert found.seconds == 10.0
    assert found.seconds_to_first_update == 3.0
    assert found.peak is not None
    assert (found.peak.before, found.peak.after) == (5.0, 5.0)
    assert found.peak_memory_bytes > 2**20


def test_losses_are_those_of_the_same_training_in_a_run() -> None:
    start = tiny_start(6, tasks=TASKS)
    found = measure_training(start, 1, 0.0, peak=lambda: 1.0)
    parts = build_parts(start.context, start.unit)
    losses = []
    for step in range(6):
        result = parts.updater.run(parts.preparation.prepare(parts.planner, step))
        examples = [value for part in result.example_losses for values in part.values() for value in values.tolist()]
        losses.append(np.mean(examples))
    assert found.losses == pytest.approx(losses[1:], rel=1e-5)


def test_an_absent_task_is_no_part_of_the_mean_loss() -> None:
    assert mean_over_rows(np.array([3, 0, 1]), torch.tensor([1.0, float("nan"), 5.0])) == 2.0


def test_the_settings_are_the_stage_s_apart_from_the_length() -> None:
    single = tiny_start(5, "single.optimizer.learning_rate=0.5", "joint.optimizer.learning_rate=0.25")
    assert (single.unit.stage, single.unit.settings.optimizer.learning_rate) == ("single", 0.5)
    joint = tiny_start(5, "joint.optimizer.learning_rate=0.25", "training.epochs=3", tasks=TASKS)
    assert (joint.unit.stage, joint.unit.settings.optimizer.learning_rate) == ("joint", 0.25)
    assert (joint.unit.settings.training.updates, joint.unit.settings.training.epochs) == (5, None)
    assert describe_start(joint, 7).dropout["hidden_dropout_prob"] == 0.1


def test_a_trial_splits_the_time_and_leaves_the_updater_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = Updater.run

    def run(self: Updater, update: object) -> object:
        seen.append(self)
        return original(self, update)  # type: ignore[arg-type]

    monkeypatch.setattr(Updater, "run", run)
    found = run_trial(tiny_start(TRIAL_UPDATES), profile=True)
    assert sum(found.time_split.values()) == pytest.approx(1.0)
    assert set(found.time_split) == {"data_wait", "forward", "backward", "optimiser"}
    assert all(share >= 0 for share in found.time_split.values())
    assert found.rows_per_update == 8.0
    assert type(seen[0].optimizer).__name__ == "Optimizer"
    assert found.profile
    assert found.profile[0].seconds >= found.profile[-1].seconds > 0


def test_a_trial_s_parts_are_read_off_the_clock() -> None:
    # Each reading is a second after the last. An update reads it at its start, after the data, twice each around the
    # forward pass, clipping and the step, and at its end: nine readings, eight seconds, of which four are no part.
    found = run_trial(tiny_start(TRIAL_UPDATES), profile=False, clock=counting_clock())
    assert found.seconds_per_update == 8.0
    assert found.time_split == {"data_wait": 1 / 8, "forward": 1 / 8, "optimiser": 2 / 8, "backward": 4 / 8}


def test_operators_are_sorted_and_their_shares_are_of_all() -> None:
    found = largest_first([("small", 2, 1.0), ("large", 1, 3.0), ("none", 9, 0.0)])
    assert [(each.operator, each.share) for each in found] == [("large", 0.75), ("small", 0.25)]
