"""A finished run's predictions on the test splits as files for a leaderboard."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mtl import tasks as task_registry
from mtl.atomic import write_bytes_atomically
from mtl.config.run import Stage
from mtl.errors import ConfigError, DataError
from mtl.evaluation.benchmarks import BENCHMARKS, Benchmark, BenchmarkName, SubmissionFile
from mtl.evaluation.submission import constant_file, submission_file, submission_zip
from mtl.stages.open_run import OpenedRun, head_task, open_run
from mtl.stages.predict_run import predict_split

logger = logging.getLogger("mtl")


@dataclass(frozen=True)
class Submission:
    """What was written: where, the files of predictions, and the reason for each file that holds one constant."""

    path: Path
    predicted: tuple[str, ...]
    filled: dict[str, str]


def submit_run(
    path: Path, out: Path, *, benchmark: BenchmarkName = "glue", stage: Stage = "joint", fill_missing: bool = False
) -> Submission:
    """Write the zip for ``benchmark`` from the stage's selected weights; each file is checked before it is written.

    DataError names the files that cannot be predicted, for want of rows or of a head, unless ``fill_missing`` asks for
    a constant in them; the leaderboard takes no zip that lacks a file.
    """
    wanted = BENCHMARKS[benchmark]
    if out.is_dir():
        raise ConfigError(f"{out} is a directory: name the zip to write in it")
    with open_run(path) as opened:
        missing = _missing(opened, wanted)
        if missing and (not fill_missing or len(missing) == len(wanted.files)):
            raise DataError(_refusal(wanted, missing))
        contents = {file.name: constant_file(wanted, file) for file in wanted.files if file.name in missing}
        contents |= _predict(opened, stage, wanted, [file for file in wanted.files if file.name not in missing])
    out.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(out, submission_zip(wanted, contents))
    for name, reason in missing.items():
        logger.warning("%s holds one constant, not predictions: %s", name, reason)
    return Submission(out, tuple(file.name for file in wanted.files if file.name not in missing), missing)


def _missing(opened: OpenedRun, benchmark: Benchmark) -> dict[str, str]:
    """Why a file cannot be predicted, by its name."""
    reasons = {}
    for file in benchmark.files:
        spec = task_registry.get(file.task)
        if head_task(spec) not in opened.trained:
            reasons[file.name] = f"the run was not trained on {head_task(spec)}"
        elif opened.missing_rows(spec, file.split):
            place = f"{spec.suite}/{spec.directory}/{spec.splits[file.split].file}"
            reasons[file.name] = f"there is no {place} under data.root, nor are its rows to be had from the hub"
    return reasons


def _refusal(benchmark: Benchmark, missing: dict[str, str]) -> str:
    reasons = "\n".join(f"  {name}: {reason}" for name, reason in missing.items())
    everything = len(missing) == len(benchmark.files)
    mend = "" if everything else ", or put a constant into these files with --fill-missing"
    return (
        f"{len(missing)} of {len(benchmark.files)} files cannot be predicted, and {benchmark.name} takes no zip "
        f"without them:\n{reasons}\nPut the test files there{mend}"
    )


def _predict(
    opened: OpenedRun, stage: Stage, benchmark: Benchmark, files: Sequence[SubmissionFile]
) -> dict[str, bytes]:
    """The content of each file, by its name; every head is opened once."""
    contents = {}
    for head in dict.fromkeys(head_task(task_registry.get(file.task)) for file in files):
        model = opened.open_model(stage, head)
        for file in files:
            spec = task_registry.get(file.task)
            if head_task(spec) == head:
                predicted = predict_split(model, spec, opened.store(spec, file.split, model.directory))
                contents[file.name] = submission_file(benchmark, file, spec, predicted)
    return contents
