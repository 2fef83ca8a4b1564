"""Directories of runs that never took place: results, predictions, sequences, but no training."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mtl import metrics, tasks
from mtl.records import ResultRecord, write_result
from mtl.rundir import RunDirectory
from mtl.tasks.spec import TaskSpec

ROWS = 200
COUNTS = np.array([[8, 8], [4, 12]])


def write_run(
    path: Path,
    arm: str,
    seed: int,
    *,
    gain: float = 0.0,
    names: Sequence[str] = ("glue/cola", "glue/stsb", "glue/rte"),
    stage: str = "joint",
    selected_on: str = "last",
    looks: int = 1,
    data: str = "d" * 64,
    rows: str = "f" * 64,
    counts: np.ndarray = COUNTS,
    predictions: bool = True,
    kfold: int | None = None,
    train_rows: int = 100,
) -> Path:
    """A run of ``arm`` whose predictions are better by ``gain``; its scores are theirs."""
    run = RunDirectory(path)
    records: dict[str, Any] = {}
    for name in names:
        spec = tasks.get(name)
        scored, labels = predict(spec, arm, seed, gain)
        found = metrics.score(spec, scored, labels).metrics
        records[name] = {
            "primary": float(np.mean([found[metric] for metric in spec.primary])),
            "selected_on": selected_on,
            "looks": looks,
            "selected_step": 2,
            "train_rows": train_rows,
            "train_rows_official": 100,
            "kfold": kfold,
            "splits": {"dev": {"metrics": found, "rows": ROWS, "rows_official": ROWS, "rows_sha256": rows}},
        }
        directory = run.stage(stage, None if stage == "joint" else name)
        if predictions:
            save(directory.predictions(name, "dev"), spec, scored, labels)
        if stage != "joint" or name == names[0]:
            directory.path.mkdir(parents=True, exist_ok=True)
            np.savez(directory.sequence, task_names=np.array(["glue/cola", "glue/rte"]), counts=counts)
    counted = [name for name in names if tasks.get(name).in_suite_score]
    suite = {"score": float(np.mean([records[name]["primary"] for name in counted])), "tasks": counted}
    result = {
        "status": "complete",
        "seed": seed,
        "arm_hash": arm * 64,
        "run_hash": f"{arm}-{stage}-{seed}",
        "partial": False,
        "encoder": {"path": "some/encoder", "known_training_data": ["SNLI"]},
        "stages": {stage: {"tasks": records, "suites": {"glue": suite}, "cost": cost()}},
    }
    path.mkdir(parents=True, exist_ok=True)
    write_result(run.result, ResultRecord.model_validate(result))
    noted: Mapping[str, Any] = {"data": {name: {"train": {"sha256": data}} for name in names}}
    run.environment.write_text(json.dumps(noted), encoding="utf-8")
    return path


def cost() -> dict[str, Any]:
    return {"updates": 2, "examples": 32, "tokens": 1000, "flops": 1e9, "seconds": 1.0}


def predict(spec: TaskSpec, arm: str, seed: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and labels; labels and how hard each example is are the task's own, the rest is the run's."""
    fixed = np.random.default_rng([ord(letter) for letter in spec.name])
    ease = fixed.normal(size=ROWS)
    random = np.random.default_rng([seed, ord(arm)])
    ease = ease + 0.3 * random.normal(size=ROWS) + 0.1 * random.normal() + gain
    if spec.kind == "regression":
        labels = np.round(fixed.uniform(0, 5, size=ROWS), 1).astype(np.float32)
        return (labels + fixed.choice([-1.0, 1.0], size=ROWS) * np.logaddexp(0, -ease)).astype(np.float32), labels
    labels = fixed.integers(0, 2, size=ROWS)
    return np.where(ease > -0.7, labels, 1 - labels), labels


def save(path: Path, spec: TaskSpec, predictions: np.ndarray, labels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [predictions, labels]
    if spec.kind == "classification":
        columns = [[spec.labels[index] for index in column] for column in columns]
    pq.write_table(pa.table({"row_id": np.arange(ROWS), "label": columns[1], "prediction": columns[0]}), path)


def write_study(path: Path, gains: Mapping[str, float], seeds: Sequence[int] = (1, 2, 3), **settings: Any) -> Path:
    """Arms in folders ``runs/<name>/seed-<seed>``, their hashes made of the names' first letters."""
    for name, gain in gains.items():
        for seed in seeds:
            write_run(path / "runs" / name / f"seed-{seed}", name[0], seed, gain=gain, **settings)
    return path / "runs"
