"""What is measured in which order, with how many updates; and that sections run in processes of their own."""

import importlib.util
from typing import Any

import pytest
from tiny_bench import ENTAIL, measure, setting, tiny_config, trial

from mtl.bench.command import Bench, updates_within, warmup_of
from mtl.bench.records import Answer, EvaluationMeasure, Peak, Request
from mtl.errors import ConfigError, DataError, MtlError


class FakeProcesses:
    """Answers every request at once, and remembers it."""

    def __init__(self, seconds_per_update: float = 0.1) -> None:
        self.requests: list[Request] = []
        self._seconds = seconds_per_update

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        if request.section == "trial":
            return Answer(trial=trial(self._seconds))
        if request.section == "eval":
            rates = tuple(1.0 for _ in range(request.turns))
            return Answer(
                evaluation=EvaluationMeasure(
                    setting=setting(),
                    rows=1,
                    tokens=1,
                    training_tokens_per_second=rates,
                    evaluation_tokens_per_second=rates,
                )
            )
        seconds = 1.0 if request.section == "mtl" else 3.0
        return Answer(training=measure(seconds).model_copy(update={"peak": Peak(before=1e9, after=1e9)}))


def test_sides_take_turns_with_a_seed_for_each_pair() -> None:
    processes = FakeProcesses()
    found = Bench(tiny_config("seed=5"), 2, 30, ("a_plugin",), processes).training(("hf-tuned", "hf-default"))
    assert [request.section for request in processes.requests] == [
        "trial", "mtl", "hf-tuned", "hf-default", "mtl", "hf-tuned", "hf-default",
    ]  # fmt: skip
    assert [request.config["seed"] for request in processes.requests[1:]] == [5, 5, 5, 6, 6, 6]
    assert {(request.updates, request.warmup) for request in processes.requests[1:]} == {(30, 5)}
    assert {request.plugins for request in processes.requests} == {("a_plugin",)}
    assert found.setting.seeds == (5, 6)
    assert found.against["hf-tuned"].ratios == (3.0, 3.0)


def test_the_number_of_updates_follows_from_the_trial() -> None:
    assert (updates_within(12.0, 0.1), updates_within(12.0, 5.0)) == (120, 20)
    assert (warmup_of(20), warmup_of(1000)) == (5, 100)
    processes = FakeProcesses(0.05)
    Bench(tiny_config(), 1, runner=processes).training()
    assert processes.requests[-1].updates == 240


def test_evaluation_takes_turns_with_training_in_one_process() -> None:
    processes = FakeProcesses()
    Bench(tiny_config(), 3, 7, runner=processes).evaluation()
    assert [(request.section, request.turns, request.updates) for request in processes.requests] == [
        ("trial", 1, 1), ("eval", 3, 21),
    ]  # fmt: skip


def test_what_makes_no_sense_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = FakeProcesses()
    with pytest.raises(ConfigError, match="--pairs 0"):
        Bench(tiny_config(), 0, runner=processes).training()
    with pytest.raises(ConfigError, match="--updates 0"):
        Bench(tiny_config(), 1, 0, runner=processes).evaluation()
    with pytest.raises(ConfigError, match="leave out --updates"):
        Bench(tiny_config(), 1, 5, runner=processes).tokenising()
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "accelerate" else found(name))
    with pytest.raises(DataError, match=r"pip install 'mtl\[bench\]'"):
        Bench(tiny_config(), 1, runner=processes).training(("hf-tuned",))
    assert processes.requests == []


# Three new processes, each of which loads torch and transformers.
@pytest.mark.timeout(400)
def test_training_and_its_peer_run_in_processes_of_its_own() -> None:
    bench = Bench(tiny_config("data.max_train_rows=40"), 1, 12)
    training = bench.training(("hf-tuned",))
    assert training.mtl.updates == training.against["hf-tuned"].updates == 12
    assert training.mtl.mfu > 0
    assert training.against["hf-tuned"].ratio > 0
    assert len(training.losses["mtl"]) == len(training.losses["hf-tuned"]) == 10


def test_an_error_in_a_section_is_raised_by_the_command_as_it_was() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.positions"):
        Bench(tiny_config("encoder.positions=16"), 1, 3).training()


def test_a_section_that_dies_is_said_to_have_died(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MtlError, match="exit code 1"):
        Bench(tiny_config(), 1, 3, ("no_such_module_at_all",)).training()
    assert "no_such_module_at_all" in capfd.readouterr().err


@pytest.mark.parametrize("ranks", ["2"])
def test_several_ranks_are_refused(monkeypatch: pytest.MonkeyPatch, ranks: str) -> None:
    values: dict[str, Any] = {"WORLD_SIZE": ranks, "RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": ranks}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="torchrun"):
        Bench(tiny_config(tasks=(ENTAIL,)), 1, runner=FakeProcesses()).training()
