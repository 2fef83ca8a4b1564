"""What a planned run would cost: tokens, operations, time, memory and disk by model, by stage and of all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mtl.config.locations import cache_directory, data_root
from mtl.config.run import RunConfig, Stage
from mtl.costs.gpus import REACHED, gpu_called
from mtl.costs.machine import find_profile, machine_key
from mtl.costs.pace import OnGpu, OnMachine, Pace
from mtl.costs.shape import EncoderShape, encoder_shape
from mtl.costs.work import Passage, training_flops
from mtl.data.lengths import LengthsKey, RowLengths, known_lengths
from mtl.data.sources import count_rows
from mtl.data.tokenizer_mark import tokenizer_mark
from mtl.stages.model_costs import ModelCosts
from mtl.stages.plan_records import Cost, RunCosts, StageCosts, StagePlan
from mtl.stages.sizes import most_dev_rows, train_portion
from mtl.tasks.registry import get, split_roles

Lengths = dict[tuple[str, str], RowLengths | None]

_NOTHING = Cost(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def run_costs(
    config: RunConfig,
    names: Sequence[str],
    stages: Sequence[StagePlan],
    rows: Mapping[str, int],
    *,
    official_sizes: bool,
    gpu: str | None,
) -> RunCosts:
    """The costs of planned ``stages`` of the tasks ``names`` with so many training ``rows``.

    Times are of updates and evaluations: loading, tokenising and saving are left out. They hold for one process.
    """
    shape = encoder_shape(config.encoder)
    lengths: Lengths = {} if official_sizes else _all_lengths(config, names, rows)
    paces = {stage.stage: _pace(config, stage, gpu) for stage in stages}
    found = []
    for stage in stages:
        models = tuple(
            ModelCosts(config, stage.stage, model, shape, names, lengths, paces[stage.stage]).cost()
            for model in stage.models
        )
        found.append(StageCosts(stage.stage, models, _together(models)))
    return RunCosts(
        tuple(found),
        _together([stage.total for stage in found]),
        None if shape is None else shape.parameters,
        None if shape is None else training_flops(shape, Passage(tokens=1000.0)),
        _basis(config, paces, gpu),
        tuple(_notes(config, shape, lengths, found)),
    )


def _all_lengths(config: RunConfig, names: Sequence[str], rows: Mapping[str, int]) -> Lengths:
    """Of each training split and dev split, cut to what is used of it; None where they are not known."""
    mark = tokenizer_mark(config.encoder)
    root, cache = data_root(config), cache_directory(config)
    found: Lengths = {}
    for name in names:
        spec = get(name)
        for split in (*(("train",) if name in rows else ()), *spec.dev_splits):
            count = rows[name] if split == "train" else count_rows(spec, split, root)
            known = None
            if mark is not None and count is not None:
                key = LengthsKey(spec, split, mark, config.data.max_length, cache)
                known = known_lengths(key, root, count, _used(config, name, split, count))
            found[name, split] = known
    return found


def _used(config: RunConfig, task: str, split: str, rows: int) -> int | None:
    """The most rows of a split that are trained on or scored; a task that is only evaluated is scored on all."""
    if split == "train":
        return train_portion(config, task).of(rows)
    return None if get(task).evaluate_only else most_dev_rows(config, task)


def _pace(config: RunConfig, stage: StagePlan, gpu: str | None) -> Pace | None:
    if gpu is not None:
        return OnGpu(gpu_called(gpu))
    # The run has one device and one number of threads; a stage may have a precision of its own.
    precision = stage.settings.get("training.precision", config.training.precision)
    key = machine_key(config.training.model_copy(update={"precision": precision}))
    profile = find_profile(key, cache_directory(config))
    return None if profile is None else OnMachine(profile)


def _basis(config: RunConfig, paces: Mapping[Stage, Pace | None], gpu: str | None) -> str:
    if gpu is not None:
        chosen = gpu_called(gpu)
        return (
            f"an estimate for one {chosen.title}: {REACHED:.0%} of its {chosen.flops_per_second / 1e12:g} TFLOP/s, or "
            f"the optimiser's traffic at {chosen.bytes_per_second / 1e12:g} TB/s, whichever takes longer; small "
            "updates wait for launches and take longer"
        )
    if any(pace is None for pace in paces.values()):
        return f"unknown: `{_command(config)}` measures this machine once"
    worst = max(pace.profile.training.worst for pace in paces.values() if isinstance(pace, OnMachine))
    return f"this machine as `mtl bench machine` measured it; its own trainings are met within {worst:.0%}"


def _command(config: RunConfig) -> str:
    """What measures the machine as this run would use it."""
    training = config.training
    words = ["mtl bench machine"]
    if training.threads is not None:
        words.append(f"training.threads={training.threads}")
    if training.precision != "auto":
        words.append(f"training.precision={training.precision}")
    if training.device != "auto":
        words.append(f"training.device={training.device}")
    if config.data.cache is not None:
        words.append(f"data.cache={config.data.cache}")
    return " ".join(words)


def _notes(config: RunConfig, shape: EncoderShape | None, lengths: Lengths, stages: Sequence[StageCosts]) -> list[str]:
    notes = []
    if shape is None:
        notes.append(
            "the encoder's shape is unknown: its config.json is not here, or of a family whose operations are not "
            "counted ahead"
        )
    elif shape.parameters is None:
        notes.append("the vocabulary is unknown until the tokenizer is here: `mtl prepare` fetches it")
    if not lengths or any(each is None for each in lengths.values()):
        notes.append("lengths of rows are unknown until `mtl prepare` (or a run) has tokenised them")
    if any(stage.total.disk_bytes_most for stage in stages):
        notes.append("time is of updates and evaluations; loading, tokenising and saving come on top")
    if config.training.devices > 1:
        notes.append("time and memory are those of one process that does all the work")
    if config.selection.patience is not None:
        notes.append("training may end sooner where patience runs out")
    evaluated = split_roles(list(dict.fromkeys(task for task, _ in lengths)))[1] if lengths else ()
    if evaluated:
        notes.append(f"only scored: {', '.join(evaluated)}")
    return notes


def _together(costs: Sequence[Cost]) -> Cost:
    """One after the other: sums, but the most memory; a sum with an unknown part is unknown."""
    total = _NOTHING
    most = 0.0
    for cost in costs:
        # What a model leaves on disk is there while later ones are trained.
        here = _sum(total.disk_bytes, cost.disk_bytes_most)
        most = math.inf if here is None else max(most, here)
        total = replace(
            total,
            updates=None if total.updates is None or cost.updates is None else total.updates + cost.updates,
            tokens=_sum(total.tokens, cost.tokens),
            flops=_sum(total.flops, cost.flops),
            evaluation_flops=_sum(total.evaluation_flops, cost.evaluation_flops),
            training_seconds=_sum(total.training_seconds, cost.training_seconds),
            evaluation_seconds=_sum(total.evaluation_seconds, cost.evaluation_seconds),
            memory_bytes=_most(total.memory_bytes, cost.memory_bytes),
            disk_bytes=_sum(total.disk_bytes, cost.disk_bytes),
        )
    return replace(total, disk_bytes_most=None if math.isinf(most) else most)


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _most(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else max(first, second)
