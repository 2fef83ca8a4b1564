import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import mtl
from mtl.config.encoder import ENCODERS
from mtl.config.run import rebuild_models
from mtl.config.sampling import SAMPLINGS, SamplingSettings
from mtl.config.weighting import WEIGHTINGS, WeightingSettings
from mtl.errors import ConfigError
from mtl.records import ResultRecord, write_result
from mtl.sampling.registry import SAMPLERS
from mtl.sampling.samplers import FixedSampler, Sampler


@pytest.fixture
def registries() -> Iterator[None]:
    """Takes back what a test registers."""
    kept = [(registry, dict(registry)) for registry in (SAMPLINGS, WEIGHTINGS, ENCODERS, SAMPLERS)]
    yield
    for registry, before in kept:
        registry.clear()
        registry.update(before)  # type: ignore[arg-type]
    rebuild_models()


def a_result(seed: int) -> ResultRecord:
    split = {"metrics": {"accuracy": 50.0 + seed, "f1": 60.0}, "rows": 10, "rows_sha256": "0"}
    task = {"primary": 55.0, "selected_on": "last", "looks": 0, "selected_step": 5, "splits": {"dev": split}}
    task["train_rows"] = 80
    cost = {"tokens": 100, "inherited": {"joint": {"tokens": 50}}}
    stage = {"tasks": {"my/task": task}, "suites": {"my": {"score": 55.0, "tasks": ["my/task"]}}, "cost": cost}
    return ResultRecord.model_validate(
        {
            "status": "complete",
            "seed": seed,
            "arm_hash": "arm",
            "run_hash": f"run {seed}",
            "partial": False,
            "encoder": {"path": "encoder"},
            "stages": {"joint": stage, "single": stage},
        }
    )


def test_importing_the_package_loads_next_to_nothing(repository: Path) -> None:
    code = "import sys, mtl\nprint([name for name in ('torch', 'pydantic', 'numpy', 'yaml') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_names_are_found_when_they_are_asked_for() -> None:
    assert mtl.tasks.get("glue/rte").name == "glue/rte"
    assert mtl.sampling.task_probabilities([1, 4], temperature=2.0) == pytest.approx([1 / 3, 2 / 3])
    assert set(mtl.__all__) <= set(dir(mtl))
    assert all(getattr(mtl, name) is not None for name in mtl.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        mtl.no_such_name  # noqa: B018


def test_a_config_is_planned() -> None:
    plan = mtl.plan(mtl.load_config("quickstart", ["seed=3"]))
    assert plan.seed == 3
    assert [stage.stage for stage in plan.stages] == ["single", "joint", "finetune"]


def test_results_are_a_frame_with_a_row_for_every_score(tmp_path: Path) -> None:
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        write_result(tmp_path / str(seed) / "result.json", a_result(seed))
    frame = mtl.results(tmp_path)
    assert len(frame) == 2 * 2 * 2
    assert not frame.duplicated(["arm", "stage", "task", "split", "metric", "seed"]).any()
    chosen = frame[(frame["stage"] == "joint") & (frame["metric"] == "accuracy")]
    assert dict(zip(chosen["seed"], chosen["score"], strict=True)) == {1: 51.0, 2: 52.0}
    assert set(frame["name"]) == {"arm"}
    assert set(chosen["train_rows"]) == {80}
    assert set(frame["primary"]) == {None}, "the task is not known here"
    assert (set(chosen["tokens"]), set(chosen["total_tokens"])) == ({100}, {150})
    assert "my/task" in mtl.table([tmp_path / "1", str(tmp_path / "2")])
    assert mtl.table(tmp_path, layout="csv").startswith("arm,task")


@pytest.mark.usefixtures("registries")
def test_a_registered_sampler_is_valid_in_a_config_and_drives_the_plan() -> None:
    class FirstTaskSampling(SamplingSettings):
        kind: Literal["first_task"] = "first_task"
        share: float = 0.5

    def first_task(settings: Any, sizes: Mapping[str, int]) -> Sampler:
        rest = (1 - settings.share) / (len(sizes) - 1)
        return FixedSampler(np.array([settings.share, *[rest] * (len(sizes) - 1)]))

    mtl.register_sampler("first_task", FirstTaskSampling, first_task)
    config = mtl.load_config("quickstart", ["stages=[joint]", "sampling.kind=first_task", "sampling.share=0.75"])
    assert mtl.plan(config).stages[0].models[0].tasks[0].share == pytest.approx(0.75)
    with pytest.raises(ConfigError, match="first_task"):
        mtl.register_sampler("first_task", FirstTaskSampling, first_task)


@pytest.mark.usefixtures("registries")
def test_a_registered_weighting_is_valid_in_a_config() -> None:
    from mtl.weighting import registry

    class OddWeighting(WeightingSettings):
        kind: Literal["odd"] = "odd"

    def odd(*_: Any) -> Any:
        return "the odd weighting"

    try:
        mtl.register_weighting("odd", OddWeighting, odd)
        config = mtl.load_config("quickstart", ["weighting=odd"])
        assert registry.make_weighting(config.weighting, [], {}, 1) == "the odd weighting"
    finally:
        registry.WEIGHTINGS.pop("odd", None)
