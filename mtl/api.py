"""What the command line does, as functions; importing this loads nothing heavy, calling it loads what is needed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mtl.config.load import load_config
from mtl.config.run import RunConfig, Stage
from mtl.records import ResultRecord, SplitRecord
from mtl.registration import register_head, register_sampler, register_weighting
from mtl.studies.verbs import compare, plot, report, results, table
from mtl.tasks.registry import register_task

if TYPE_CHECKING:
    from mtl.bench.other_reports import EvaluationReport, MachineReport, TokenisingReport
    from mtl.bench.records import Peer
    from mtl.bench.report import TrainingReport
    from mtl.evaluation.benchmarks import BenchmarkName
    from mtl.evaluation.diagnostics import TagDiagnosis
    from mtl.stages.catalogue import TaskEntry
    from mtl.stages.doctor import Diagnosis
    from mtl.stages.plan_records import RunPlan
    from mtl.stages.prepare import Prepared
    from mtl.stages.submit_run import Submission
    from mtl.studies.conduct import Outcome
    from mtl.studies.expand import PlannedRun
    from mtl.studies.spec import StudySpec
    from mtl.studies.study import LauncherName

__all__ = [
    "bench_evaluation",
    "bench_machine",
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
]


def run(
    config: RunConfig, *, resume: bool = False, overwrite: bool = False, plugins: Sequence[str] = ()
) -> ResultRecord:
    """Train and evaluate as ``config.stages`` say, write the run directory ``config.out``, and return its result.

    ``resume`` continues what is there, ``overwrite`` replaces it; with neither a directory that is not empty is a
    ConfigError. With ``training.devices`` above 1 other processes do the work; what is registered in this one alone is
    unknown to them, so ``plugins`` names the modules that they import first.
    """
    from mtl.stages.devices import run_on_devices

    return run_on_devices(config, resume=resume, overwrite=overwrite, plugins=plugins)


def study_runs(study: "StudySpec", out: str | Path) -> "tuple[PlannedRun, ...]":
    """Every run of a study, with its settings and its directory below ``out``; nothing is started or written."""
    from mtl.studies.expand import expand

    return expand(study, Path(out))


def study(
    study: "StudySpec",
    out: str | Path,
    *,
    launcher: "LauncherName" = "inline",
    workers: int | None = None,
    runs_per_device: int = 1,
    retry_failed: bool = False,
    reuse: Sequence[str | Path] = (),
    plugins: Sequence[str] = (),
) -> "Outcome":
    """Carry out every run of a study that is not complete, in directories below ``out``; how all of them ended.

    Called again with the same ``out`` it goes on where it was broken off; arms and seeds may have been added. The
    launcher is ``inline``: in this process, ``local``: in ``workers`` processes, by default as many as find a GPU or
    cores, or ``slurm``: as jobs of a cluster.
    Runs that a study in one of the directories ``reuse`` has finished are copied from there.
    """
    from mtl.studies.study import run_study

    return run_study(
        study,
        Path(out),
        launcher=launcher,
        workers=workers,
        runs_per_device=runs_per_device,
        retry_failed=retry_failed,
        reuse=[Path(path) for path in reuse],
        plugins=plugins,
    )


def evaluate(
    run: str | Path, *, stage: Stage = "joint", tasks: Sequence[str] = (), split: str | None = None
) -> dict[str, dict[str, SplitRecord]]:
    """Scores by task and split of the weights that ``stage`` of a run left; by default of all tasks, on dev splits."""
    from mtl.stages.evaluate_run import evaluate_run

    return evaluate_run(Path(run), stage=stage, tasks=tasks, split=split)


def diagnose(run: str | Path, task: str, *, stage: Stage = "joint", split: str | None = None) -> "TagDiagnosis":
    """R3 of a diagnostic set (``glue/ax``) over all rows, and by the coarse and fine tags of its rows."""
    from mtl.stages.evaluate_run import diagnose_run

    return diagnose_run(Path(run), task, stage=stage, split=split)


def predict(
    run: str | Path,
    *,
    stage: Stage = "joint",
    tasks: Sequence[str] = (),
    split: str = "test",
    out: str | Path | None = None,
    precision: Literal["fp32", "bf16"] | None = None,
) -> dict[str, dict[str, Path]]:
    """Write predictions for a split of the tasks, labelled or not, as Parquet files; their paths by task and split.

    They go below ``out``, by default into the run's own directory. ``precision`` is by default that of the training.
    """
    from mtl.stages.predict_run import predict_run

    target = None if out is None else Path(out)
    return predict_run(Path(run), stage=stage, tasks=tasks, split=split, out=target, precision=precision)


def submit(
    run: str | Path,
    out: str | Path,
    *,
    benchmark: "BenchmarkName" = "glue",
    stage: Stage = "joint",
    fill_missing: bool = False,
) -> "Submission":
    """Write the zip that a leaderboard takes; files that cannot be predicted are an error, or filled if so asked."""
    from mtl.stages.submit_run import submit_run

    return submit_run(Path(run), Path(out), benchmark=benchmark, stage=stage, fill_missing=fill_missing)


def check_submission(path: str | Path, *, benchmark: "BenchmarkName" = "glue") -> list[str]:
    """What is wrong with a zip for a leaderboard, each fault with its file and line; nothing where all is well."""
    from mtl.evaluation.benchmarks import BENCHMARKS
    from mtl.evaluation.submission_check import zip_faults

    return zip_faults(BENCHMARKS[benchmark], Path(path))


def export(run: str | Path, directory: str | Path, *, task: str, stage: Stage = "joint") -> Path:
    """Write one task of a run as a directory that plain transformers opens, its logits compared; its path."""
    from mtl.stages.export import export_task

    return export_task(Path(run), Path(directory), task=task, stage=stage)


def plan(config: RunConfig, *, official_sizes: bool = False, gpu: str | None = None) -> "RunPlan":
    """What ``run`` would do: sizes, probabilities, expected examples and updates of every model. Writes nothing.

    And what that would cost: on this machine where ``bench_machine`` has measured it, or on the ``gpu`` of that name.
    """
    from mtl.stages.plan import plan_run

    return plan_run(config, official_sizes=official_sizes, gpu=gpu)


def task_catalogue(names: Sequence[str], data_root: Path | None) -> "list[TaskEntry]":
    """The tasks called ``names``, each with its labels, metrics and sizes, and whether its data are there."""
    from mtl.stages.catalogue import task_entries

    return task_entries(names, data_root)


def prepare(config: RunConfig) -> "Prepared":
    """Fetch and tokenise all that a run of ``config`` needs, so that the run itself can do without a network."""
    from mtl.stages.prepare import prepare as prepare_run

    return prepare_run(config)


def doctor(config: RunConfig, *, survey: bool = False) -> "Diagnosis":
    """What ``config`` needs and whether it is on this machine; with ``survey`` what is here of all that is known."""
    from mtl.stages.doctor import diagnose

    return diagnose(config, survey=survey)


def bench_training(
    config: RunConfig,
    *,
    against: "Sequence[Peer]" = (),
    pairs: int = 3,
    updates: int | None = None,
    profile: bool = False,
    plugins: Sequence[str] = (),
) -> "TrainingReport":
    """How fast ``config`` trains, ``pairs`` times in turn with each peer; ``plugins`` are imported by every process."""
    from mtl.bench.command import Bench

    return Bench(config, pairs, updates, tuple(plugins)).training(against, profile=profile)


def bench_evaluation(
    config: RunConfig, *, pairs: int = 3, updates: int | None = None, plugins: Sequence[str] = ()
) -> "EvaluationReport":
    """How fast the dev splits of ``config`` are evaluated, ``pairs`` times in turn with training."""
    from mtl.bench.command import Bench

    return Bench(config, pairs, updates, tuple(plugins)).evaluation()


def bench_tokenising(
    config: RunConfig, *, pairs: int = 3, updates: int | None = None, plugins: Sequence[str] = ()
) -> "TokenisingReport":
    """How fast the training rows of ``config`` are tokenised, ``pairs`` times in turn with the bare tokenizer."""
    from mtl.bench.command import Bench

    return Bench(config, pairs, updates, tuple(plugins)).tokenising()


def bench_machine(config: RunConfig, *, plugins: Sequence[str] = ()) -> "MachineReport":
    """Measure what training time and memory follow from on this machine, about a minute, and keep it for ``plan``.

    Of ``config`` only the device, threads, precision and cache directory matter.
    """
    from mtl.bench.command import Bench

    return Bench(config, plugins=tuple(plugins)).machine()
