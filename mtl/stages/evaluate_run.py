"""Scoring a finished run's model once more, on any labelled split."""

from collections.abc import Sequence
from pathlib import Path

from mtl import tasks as task_registry
from mtl.config.load import load_config
from mtl.config.locations import cache_directory, data_root
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig, Stage
from mtl.data.build_store import load_store
from mtl.data.tokenizer import tokenizer_from_path
from mtl.errors import ConfigError, DataError
from mtl.evaluation.evaluate import Evaluator, score_predictions
from mtl.models.head_registry import make_head
from mtl.models.load import load_saved_encoder
from mtl.models.multitask import MultitaskModel
from mtl.records import SplitRecord
from mtl.rundir import RunDirectory
from mtl.runtime.checkpoint_files import verify_checkpoint
from mtl.runtime.signals import StopSignals
from mtl.stages.context import stage_precision
from mtl.stages.environment import read_environment, start_hardware
from mtl.stages.models import check_heads, load_weights
from mtl.stages.training_files import selected_weights
from mtl.tasks.spec import TaskSpec


def evaluate_run(
    path: Path, *, stage: Stage = "joint", tasks: Sequence[str] = (), split: str | None = None
) -> dict[str, dict[str, SplitRecord]]:
    """Scores by task and split of the stage's selected weights; ``split`` None is every dev split.

    Runs as the run did: same precision, same batches, so the scores equal those in its result. DataError where the
    stage has no weights, or the split no labels.
    """
    run = RunDirectory(path)
    if not run.config.is_file():
        raise DataError(f"{path} is no run directory: it has no config.yaml")
    config = load_config(run.config)
    known = task_registry.expand(config.tasks)
    chosen = task_registry.expand(tasks) if tasks else known
    strangers = sorted(set(chosen) - set(known))
    if strangers:
        raise ConfigError(f"{path} was not trained on {', '.join(strangers)}; it was on {', '.join(known)}")
    hardware = start_hardware(config, read_environment(run.environment))
    scores = {}
    with StopSignals() as signals:
        for name in chosen:
            spec = task_registry.get(name)
            settings = resolve_stage(config, stage, None if stage == "joint" else name)
            directory = selected_weights(run.stage(stage, None if stage == "joint" else name), settings.selection)
            model = _load(config, stage, spec, directory).to(hardware.device)
            evaluator = Evaluator(
                settings.evaluation.tokens_per_batch,
                stage_precision(config, settings, hardware.precision, hardware.device),
                hardware.device,
                check=signals.raise_if_requested,
            )
            splits = spec.dev_splits if split is None else (split,)
            scores[name] = {part: _score(config, model, spec, part, directory, evaluator) for part in splits}
    return scores


def _load(config: RunConfig, stage: Stage, spec: TaskSpec, directory: Path) -> MultitaskModel:
    verify_checkpoint(directory)
    check_heads(directory, [spec])
    encoder = load_saved_encoder(directory, config.encoder.batching)
    head = make_head(spec, encoder.width, resolve_head(config, stage, spec.name))
    model = MultitaskModel(encoder, {spec.name: head})
    load_weights(model, directory)
    return model


def _score(
    config: RunConfig, model: MultitaskModel, spec: TaskSpec, split: str, directory: Path, evaluator: Evaluator
) -> SplitRecord:
    store = load_store(
        spec,
        split,
        tokenizer_from_path(directory),
        max_length=config.data.max_length,
        root=data_root(config),
        cache=cache_directory(config),
    )
    if not store.labelled:
        raise DataError(f"{spec.name}, split {split}: it has no labels, so it cannot be scored")
    scores = score_predictions(spec, evaluator.predict(model, spec, store))
    return SplitRecord(
        metrics=scores.metrics,
        rows=store.rows,
        rows_official=spec.splits[split].official_rows,
        rows_sha256=store.data_fingerprint,
        flags=scores.flags,
    )
