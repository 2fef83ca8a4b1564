"""What `mtl bench train` reports, as one document of fixed shape, and how it is made from the sections."""

import statistics
from collections.abc import Mapping, Sequence

from mtl.bench.figures import InTurn, in_turn, mean_curve, tokens_per_second, utilisation
from mtl.bench.records import OperatorTime, Peer, Record, Setting, TrainingMeasure, Trial


class SideFigures(Record):
    """One side's figures: medians over its sections, each section's rate in ``rates``.

    ``padding``: the share of the tokens that the model was run on which were none; ``mfu`` is of the peak that mtl's
    sections measured, for peers too. ``seconds`` and ``updates`` are of one section, warm-up not counted.
    """

    real_tokens_per_second: float
    rows_per_second: float
    flops_per_second: float
    mfu: float
    seconds_to_first_update: float
    peak_memory_bytes: int
    padding: float
    updates: int
    seconds: float
    rates: tuple[float, ...]


class MtlFigures(SideFigures):
    """This project's own figures; ``time_split`` and ``profile`` come from a short training of their own."""

    peak_flops_per_second: float
    time_split: dict[str, float]
    profile: tuple[OperatorTime, ...]


class PeerFigures(SideFigures, InTurn):
    """A peer's figures; ``ratios`` are mtl's rate over the peer's, pair by pair."""


class MeasuredSetting(Setting):
    """The setting, and the size and number of what was measured: means over the trial's updates, and seeds used."""

    mean_rows_per_update: float
    mean_tokens_per_update: float
    warmup_updates: int
    timed_updates: int
    pairs: int
    seeds: tuple[int, ...]


class TrainingReport(Record):
    """The document of ``--json``. ``losses``: mean loss by tenths of the timed updates, by side."""

    mtl: MtlFigures
    against: dict[str, PeerFigures]
    setting: MeasuredSetting
    losses: dict[str, list[float]]
    notes: tuple[str, ...]


def training_report(
    trial: Trial,
    setting: MeasuredSetting,
    own: Sequence[TrainingMeasure],
    peers: Mapping[Peer, Sequence[TrainingMeasure]],
) -> TrainingReport:
    """All figures of a measurement; ``own`` and each peer's sections are in the order they were measured in."""
    peaks = [measure.peak.best for measure in own if measure.peak is not None]
    ours, against = _side(own, peaks), {}
    for peer, measures in peers.items():
        theirs = _side(measures, peaks)
        against[str(peer)] = PeerFigures(**theirs.model_dump(), **in_turn(ours.rates, theirs.rates).model_dump())
    curves = {"mtl": mean_curve(own)}
    if len(setting.tasks) == 1:
        curves |= {str(peer): mean_curve(measures) for peer, measures in peers.items()}
    return TrainingReport(
        mtl=MtlFigures(
            **ours.model_dump(),
            peak_flops_per_second=statistics.median(peaks),
            time_split=trial.time_split,
            profile=trial.profile,
        ),
        against=against,
        setting=setting,
        losses=curves,
        notes=_notes(setting, tuple(peers)),
    )


def _side(measures: Sequence[TrainingMeasure], peaks: Sequence[float]) -> SideFigures:
    """Medians over sections; the section of each pair is held against the peak measured in that pair."""
    return SideFigures(
        real_tokens_per_second=statistics.median(map(tokens_per_second, measures)),
        rows_per_second=statistics.median(measure.rows / measure.seconds for measure in measures),
        flops_per_second=statistics.median(measure.flops / measure.seconds for measure in measures),
        mfu=statistics.median(
            utilisation(measure.flops, measure.seconds, peak) for measure, peak in zip(measures, peaks, strict=True)
        ),
        seconds_to_first_update=statistics.median(measure.seconds_to_first_update for measure in measures),
        peak_memory_bytes=int(statistics.median(measure.peak_memory_bytes for measure in measures)),
        padding=statistics.median(1.0 - measure.tokens / measure.padded_tokens for measure in measures),
        updates=measures[0].updates,
        seconds=statistics.median(measure.seconds for measure in measures),
        rates=tuple(map(tokens_per_second, measures)),
    )


def _notes(setting: MeasuredSetting, peers: Sequence[Peer]) -> tuple[str, ...]:
    notes = [
        "Rates count real tokens only. The clock covers data and optimiser; loading, warm-up and evaluation are left "
        "out. Learning rate and sampling run through their schedules within the warm-up and timed updates.",
        "The time split and the profile come from a short training of their own, in which the host waits for the "
        "device after each part.",
    ]
    if peers:
        notes.append(
            "Each section ran in a process of its own, mtl and peers in turn; a pair's sections share a seed, and so "
            "the rows. Peers get rows already tokenised, the same learning rates, dropout rates, clipping and decay."
        )
    if "hf-default" in peers:
        notes.append(
            "hf-default: Trainer as transformers' text-classification example sets it: fp32, every row padded to "
            "data.max_length, the same rows in each update."
        )
    if "hf-tuned" in peers:
        notes.append(
            "hf-tuned: Trainer with padding by batch, rows grouped by length (as group_by_length does in a long "
            "training, its batches shuffled), fused AdamW and the precision of mtl: the same rows over warm-up and "
            "timed updates, in another order."
        )
    if peers and len(setting.tasks) > 1:
        notes.append(
            "Trainer knows no mixture of tasks: the peers train one head on the texts of all tasks, in the mixture "
            "that mtl draws, labels taken modulo its outputs. Speed only; loss curves are not compared."
        )
    return tuple(notes)
