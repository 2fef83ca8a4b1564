"""Train one shared encoder on many language-understanding tasks at once. Names are loaded when first used."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtl import config, data, metrics, sampling, tasks
    from mtl.api import (
        bench_evaluation,
        bench_tokenising,
        bench_training,
        check_submission,
        compare,
        diagnose,
        doctor,
        evaluate,
        export,
        load_config,
        plan,
        plot,
        predict,
        prepare,
        register_head,
        register_sampler,
        register_task,
        register_weighting,
        report,
        results,
        run,
        study,
        study_runs,
        submit,
        table,
        task_catalogue,
    )
    from mtl.tasks.spec import TaskSpec

_FUNCTIONS = (
    "bench_evaluation",
    "bench_tokenising",
    "bench_training",
    "check_submission",
    "compare",
    "diagnose",
    "doctor",
    "evaluate",
    "export",
    "load_config",
    "plan",
    "plot",
    "predict",
    "prepare",
    "register_head",
    "register_sampler",
    "register_task",
    "register_weighting",
    "report",
    "results",
    "run",
    "study",
    "study_runs",
    "submit",
    "table",
    "task_catalogue",
)
_PARTS = ("config", "data", "metrics", "sampling", "tasks")

__all__ = [
    "TaskSpec",
    "bench_evaluation",
    "bench_tokenising",
    "bench_training",
    "check_submission",
    "compare",
    "config",
    "data",
    "diagnose",
    "doctor",
    "evaluate",
    "export",
    "load_config",
    "metrics",
    "plan",
    "plot",
    "predict",
    "prepare",
    "register_head",
    "register_sampler",
    "register_task",
    "register_weighting",
    "report",
    "results",
    "run",
    "sampling",
    "study",
    "study_runs",
    "submit",
    "table",
    "task_catalogue",
    "tasks",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _FUNCTIONS:
        return getattr(importlib.import_module("mtl.api"), name)
    if name in _PARTS:
        return importlib.import_module(f"mtl.{name}")
    if name == "TaskSpec":
        return importlib.import_module("mtl.tasks.spec").TaskSpec
    raise AttributeError(f"module 'mtl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
