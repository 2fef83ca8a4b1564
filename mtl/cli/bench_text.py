"""Measurements of speed as text for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtl.studies.columns import aligned

if TYPE_CHECKING:
    from mtl.bench.other_reports import EvaluationReport, MachineReport, TokenisingReport
    from mtl.bench.records import Setting
    from mtl.bench.report import SideFigures, TrainingReport

_WIDTH = 120
_PARTS = {"data_wait": "waiting for data", "forward": "forward", "backward": "backward", "optimiser": "optimiser"}


def training_text(report: "TrainingReport") -> str:
    """Setting, figures of each side, every ratio, loss curves, where the time goes, and what the figures mean."""
    setting = report.setting
    split = report.mtl.time_split
    size = "rows" if setting.rows_per_update else "tokens"
    lines = [
        *setting_lines(setting),
        f"update   {setting.rows_per_update or setting.tokens_per_update:,} {size}; on average "
        f"{setting.mean_rows_per_update:,.1f} rows, {setting.mean_tokens_per_update:,.1f} tokens",
        f"clock    {setting.warmup_updates} warm-up and {setting.timed_updates} timed updates, "
        f"{setting.pairs} times, seeds {', '.join(map(str, setting.seeds))}",
        "",
        *_sides(report),
        "",
        *_ratios(report),
        *_losses(report),
        "",
        "time of an update: " + ", ".join(f"{_PARTS[part]} {share:.1%}" for part, share in split.items()),
        *_profile(report),
        "",
        *note_lines(report.notes),
    ]
    return "\n".join(lines) + "\n"


def evaluation_text(report: "EvaluationReport") -> str:
    """Setting, both rates, every ratio, and what the figures mean."""
    found = report.eval
    lines = [
        *setting_lines(report.setting),
        f"splits   {found.rows:,} rows, {found.tokens:,} tokens",
        "",
        f"evaluation  {found.real_tokens_per_second:,.0f} tokens/s",
        f"training    {found.training_real_tokens_per_second:,.0f} tokens/s",
        f"evaluation / training: median {found.ratio:.2f} of {_listed(found.ratios)}",
        "",
        *note_lines(report.notes),
    ]
    return "\n".join(lines) + "\n"


def tokenising_text(report: "TokenisingReport") -> str:
    """Setting, both rates, every ratio, and what the figures mean."""
    found, setting = report.tokenise, report.setting
    rows = [
        ("token store", f"{found.rows_per_second:,.0f}", f"{found.real_tokens_per_second:,.0f}"),
        ("bare tokenizer", f"{found.bare_rows_per_second:,.0f}", f"{found.bare_real_tokens_per_second:,.0f}"),
    ]
    lines = [
        f"tokenizer  {setting.tokenizer}, {setting.max_length} tokens at most; tokenizers "
        f"{setting.versions.get('tokenizers')}",
        f"texts      {found.rows:,} rows, {found.tokens:,} tokens: {', '.join(setting.tasks)}",
        f"machine    {setting.machine['processor'] or 'unknown processor'}, {setting.machine['cores_usable']} cores",
        f"code       {setting.commit or 'no repository'}",
        "",
        *aligned(("", "rows/s", "tokens/s"), rows),
        f"token store / bare tokenizer: median {found.ratio:.2f} of {_listed(found.ratios)}",
        "",
        *note_lines(report.notes),
    ]
    return "\n".join(lines) + "\n"


def machine_text(report: "MachineReport") -> str:
    """What each case took and how far the fit is from it, the coefficients, and where they are kept."""
    profile = report.profile
    rows = [
        (
            case.name,
            f"{case.training_seconds * 1e3:,.1f}",
            f"{profile.training.residuals[number]:+.0%}",
            f"{case.evaluation_seconds * 1e3:,.1f}",
            f"{profile.evaluation.residuals[number]:+.0%}",
            f"{case.training_bytes / 2**20:,.0f}",
            f"{profile.training_memory.residuals[number]:+.0%}",
        )
        for number, case in enumerate(profile.cases)
    ]
    header = ("encoder and update", "update ms", "fit", "evaluation ms", "fit", "MiB", "fit")
    fits = {"update": profile.training, "evaluation": profile.evaluation, "memory": profile.training_memory}
    lines = [
        f"machine  {profile.key.processor or 'unknown processor'}, {profile.key.cores_usable} cores; {profile.device}, "
        f"{profile.threads} threads, {profile.precision}; torch {profile.key.torch}",
        "",
        *aligned(header, rows),
        "",
        *(
            f"{name}: " + ", ".join(f"{value:.3g} * {quantity}" for quantity, value in fit.coefficients.items())
            for name, fit in fits.items()
        ),
        f"kept in {report.file}, where mtl plan finds it",
    ]
    return "\n".join(lines) + "\n"


def _listed(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def setting_lines(setting: "Setting") -> list[str]:
    """Model, machine and software, a line each."""
    gpus = "".join(f", {name}" for name in setting.machine["gpus"])
    processor = setting.machine["processor"] or "unknown processor"
    rates = ", ".join(f"{name} {rate:g}" for name, rate in setting.dropout.items())
    return [
        f"model    {setting.model}, {setting.parameters:,} parameters, {setting.stage}: {', '.join(setting.tasks)}",
        f"dropout  {rates}",
        f"machine  {processor}{gpus}; {setting.device}, {setting.threads} threads, {setting.precision}",
        f"code     {setting.commit or 'no repository'}; torch {setting.versions.get('torch')}, "
        f"transformers {setting.versions.get('transformers')}",
    ]


def note_lines(notes: tuple[str, ...]) -> list[str]:
    """The notes, wrapped to the width of a page."""
    return [line for note in notes for line in textwrap.wrap(note, _WIDTH)]


def _sides(report: "TrainingReport") -> list[str]:
    header = ("", "tokens/s", "rows/s", "TFLOP/s", "MFU", "padding", "first update", "memory", "section")
    sides = {"mtl": report.mtl, **report.against}
    peak = f"MFU is of {report.mtl.peak_flops_per_second / 1e12:.3f} TFLOP/s, the best large matrix product in between"
    return [*aligned(header, [_side(name, side) for name, side in sides.items()]), peak]


def _side(name: str, side: "SideFigures") -> tuple[str, ...]:
    return (
        name,
        f"{side.real_tokens_per_second:,.0f}",
        f"{side.rows_per_second:,.1f}",
        f"{side.flops_per_second / 1e12:.4f}",
        f"{side.mfu:.1%}",
        f"{side.padding:.1%}",
        f"{side.seconds_to_first_update:.2f} s",
        f"{side.peak_memory_bytes / 2**20:,.0f} MiB",
        f"{side.seconds:.1f} s",
    )


def _ratios(report: "TrainingReport") -> Iterator[str]:
    for peer, figures in report.against.items():
        yield f"mtl / {peer}: median {figures.ratio:.2f} of {_listed(figures.ratios)}"
    if report.against:
        yield ""


def _losses(report: "TrainingReport") -> list[str]:
    parts = len(report.losses["mtl"])
    header = ("loss by tenth" if parts == 10 else "loss by update", *(str(part + 1) for part in range(parts)))
    return aligned(header, [(side, *(f"{loss:.4f}" for loss in curve)) for side, curve in report.losses.items()])


def _profile(report: "TrainingReport") -> list[str]:
    if not report.mtl.profile:
        return []
    rows = [
        (each.operator, f"{each.calls:,}", f"{each.seconds * 1e3:,.1f}", f"{each.share:.1%}")
        for each in report.mtl.profile
    ]
    return ["", *aligned(("operator", "calls", "own ms", "share"), rows)]
