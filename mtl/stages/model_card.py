"""The model card of an exported task: what it was trained on and how, what it scored, and what to beware of."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig, Stage
from mtl.records import ResultRecord, TaskRecord, read_result
from mtl.rundir import RunDirectory
from mtl.stages.environment import read_environment
from mtl.tasks.spec import TaskSpec

if TYPE_CHECKING:
    from huggingface_hub import ModelCard


def model_card(
    run: RunDirectory, config: RunConfig, trained: Sequence[str], *, stage: Stage, spec: TaskSpec
) -> "ModelCard":
    """The card of one task of a run, from its config and its result; DataError where there is no result."""
    from huggingface_hub import ModelCard, ModelCardData

    result = read_result(run.result)
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-classification",
        tags=["multi-task-learning"],
        datasets=[spec.hub[0]] if spec.hub is not None else None,
    )
    parts = [
        f"# {spec.name}",
        _purpose(spec),
        "## Scores",
        _scores(spec, result.stages[stage].tasks[spec.name]),
        _warnings(result, result.stages[stage].tasks[spec.name]),
        "## Training",
        _training(run, config, trained, stage, spec, result),
        "## Use",
        _use(spec),
    ]
    text = "\n\n".join(part for part in parts if part)
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def _purpose(spec: TaskSpec) -> str:
    texts = "one text" if len(spec.text_columns) == 1 else "two texts"
    if spec.kind == "regression":
        low, high = spec.score_range or (0.0, 1.0)
        return f"Takes {texts} and gives one score, trained on scores from {low:g} to {high:g}; it is not clipped."
    return f"Takes {texts} and chooses among: {', '.join(spec.labels)}."


def _scores(spec: TaskSpec, record: TaskRecord) -> str:
    """A table of every metric of every split, times 100."""
    lines = ["| split | rows | rows of the official release | metric | score |", "|---|---|---|---|---|"]
    for split, scored in record.splits.items():
        official = "-" if scored.rows_official is None else str(scored.rows_official)
        for metric, value in scored.metrics.items():
            lines.append(f"| {split} | {scored.rows} | {official} | {metric} | {value:.2f} |")
    lines.append(f"\nSelected on: {record.selected_on} (primary: {', '.join(spec.primary)}).")
    return "\n".join(lines)


def _warnings(result: ResultRecord, record: TaskRecord) -> str:
    found = []
    lacking = [split for split, scored in record.splits.items() if scored.rows_official not in (None, scored.rows)]
    if lacking:
        found.append(f"Scored on partial data ({', '.join(lacking)}): not to be put beside published scores.")
    if record.kfold is not None:
        found.append(
            f"Train and dev were divided anew into {record.kfold} folds: trained on all but fold {result.fold}, scored "
            "on that one."
        )
    cut = [split for split, scored in record.splits.items() if scored.rows_at_hand is not None]
    if cut:
        found.append(f"Scored on a fixed part of the rows at hand ({', '.join(cut)}).")
    if record.labels_shuffled:
        found.append("TRAINED ON SHUFFLED LABELS, as a control: it has learnt nothing of the task.")
    if record.train_rows_official not in (None, record.train_rows):
        found.append(f"Trained on {record.train_rows} of the {record.train_rows_official} rows of the official train.")
    elif result.partial:
        found.append("Some task of the run was trained or scored on partial data.")
    if record.selected_on == "dev":
        found.append("The weights were chosen by the scores above, so these are higher than on new data.")
    if result.encoder.known_training_data:
        found.append(f"The encoder had been trained before on: {', '.join(result.encoder.known_training_data)}.")
    return "\n".join(f"* {line}" for line in found)


def _training(
    run: RunDirectory, config: RunConfig, trained: Sequence[str], stage: Stage, spec: TaskSpec, result: ResultRecord
) -> str:
    how = {
        "joint": f"jointly on {', '.join(trained)}",
        "single": "on this task alone",
        "finetune": f"jointly on {', '.join(trained)}, then on this task alone",
    }[stage]
    settings = resolve_stage(config, stage, None if stage == "joint" else spec.name)
    length = (
        f"{settings.training.updates} updates" if settings.training.updates else f"{settings.training.epochs:g} epochs"
    )
    environment = read_environment(run.environment)
    versions = {} if environment is None else environment.versions
    lines = [
        f"* trained {how}; encoder: {_encoder(config)}",
        f"* {length}, learning rate {settings.optimizer.learning_rate:g}, sampling {settings.sampling.kind}, "
        f"weighting {settings.weighting.kind}, texts cut to {config.data.max_length} tokens",
        f"* seed {result.seed}; run {result.run_hash[:12]}; mtl {versions.get('mtl', 'of an unknown version')}",
    ]
    return "\n".join(lines)


def _encoder(config: RunConfig) -> str:
    path = getattr(config.encoder, "path", None)
    if path is None:
        return "random weights"
    # A path on somebody's machine tells a reader nothing but its last part.
    return PurePath(path).name if PurePath(path).is_absolute() else str(path)


def _use(spec: TaskSpec) -> str:
    texts = ", ".join(["first", "second"][: len(spec.text_columns)])
    return "\n".join(
        [
            "```python",
            "from transformers import AutoModelForSequenceClassification, AutoTokenizer",
            "",
            "tokenizer = AutoTokenizer.from_pretrained(directory)",
            "model = AutoModelForSequenceClassification.from_pretrained(directory)",
            f'logits = model(**tokenizer({texts}, truncation=True, return_tensors="pt")).logits',
            "```",
        ]
    )
